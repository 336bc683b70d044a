// SPDX-License-Identifier: Apache-2.0
//
// Whether ccom or the MPI below is faster, for one kind of call and one class of sizes on one communicator: measured
// with buffers of our own when the first such call comes, the calls of both in turn, and settled by the slowest rank.
#include <algorithm>
#include <array>
#include <chrono>
#include <limits>
#include <numeric>
#include <vector>

#include "doors/mpi/arguments.h"
#include "doors/mpi/call.h"

namespace ccom::mpi {
namespace {

constexpr uint64_t kMostMemory = uint64_t{16} << 20;  // of a buffer
constexpr std::array<uint64_t, 2> kUnsizedParts = {64, 32768};
constexpr int kRounds = 4;
constexpr double kMargin = 1.02;                // equally fast calls are ccom's
constexpr double kRoundSeconds = 1e-3;          // of calls of the slower way, at least
constexpr int kMostCalls = 4096;                // in a round
constexpr double kLongCall = 1e-3, kClear = 3;  // a long call that much slower than the other needs no second look

using Clock = std::chrono::steady_clock;

// Both ways of one call, on buffers of this object.
class Trial {
 public:
  Trial(Communicator& of, Kind kind, uint64_t part)
      : of_(of),
        kind_(kind),
        part_(part),
        counts_(ranks(), static_cast<int>(part)),
        at_(ranks()),
        float_counts_(ranks(), static_cast<int>(part / sizeof(float))),
        sizes_(ranks(), part) {
    make_unequal();
    std::exclusive_scan(counts_.begin(), counts_.end(), at_.begin(), 0);
    given_.resize((part + part / 4) * ranks());
    got_.resize((part + part / 4) * ranks());
  }

  void run(bool ccom) { ccom ? run_ccom() : run_mpi(); }

 private:
  // Parts of calls with counts, a quarter more and less in turn; what a rank gives to another one is what that expects.
  void make_unequal() {
    const bool is_between_all = kind_ == Kind::Alltoallv;
    if (!is_between_all && kind_ != Kind::Allgatherv && kind_ != Kind::Gatherv && kind_ != Kind::Scatterv) return;
    for (size_t i = 0; i < ranks(); ++i) {
      const bool is_more = ((is_between_all ? static_cast<size_t>(of_.rank) : 0) + i) % 2 == 0;
      sizes_[i] = is_more ? part_ + part_ / 4 : part_ - part_ / 4;
      counts_[i] = static_cast<int>(sizes_[i]);
    }
  }

  size_t own() const { return sizes_[static_cast<size_t>(of_.rank)]; }

  size_t ranks() const { return static_cast<size_t>(of_.size); }

  void run_ccom() {
    const CcomLibrary& lib = ccom_library();
    const size_t floats = part_ / sizeof(float);
    std::byte *const in = given_.data(), *const out = got_.data();
    switch (kind_) {
      case Kind::Barrier: lib.Barrier(of_.comm, nullptr); return;
      case Kind::Bcast: lib.Broadcast(in, in, part_, kBytes, 0, of_.comm, nullptr); return;
      case Kind::Allreduce: lib.AllReduce(in, out, floats, ccomFloat32, ccomSum, of_.comm, nullptr); return;
      case Kind::Reduce: lib.Reduce(in, out, floats, ccomFloat32, ccomSum, 0, of_.comm, nullptr); return;
      case Kind::ReduceScatterBlock:
        lib.ReduceScatter(in, out, floats, ccomFloat32, ccomSum, of_.comm, nullptr);
        return;
      case Kind::ReduceScatter: {
        const std::vector<size_t> sizes(ranks(), floats);
        lib.ReduceScatterV(in, out, sizes.data(), ccomFloat32, ccomSum, of_.comm, nullptr);
        return;
      }
      case Kind::Allgather: lib.AllGather(in, out, part_, kBytes, of_.comm, nullptr); return;
      case Kind::Allgatherv: lib.AllGatherV(in, own(), out, sizes_.data(), nullptr, kBytes, of_.comm, nullptr); return;
      case Kind::Alltoall: lib.AlltoAll(in, out, part_, kBytes, of_.comm, nullptr); return;
      case Kind::Alltoallv:
        lib.AlltoAllV(in, sizes_.data(), nullptr, out, sizes_.data(), nullptr, kBytes, of_.comm, nullptr);
        return;
      case Kind::Gather: lib.Gather(in, out, part_, kBytes, 0, of_.comm, nullptr); return;
      case Kind::Gatherv: lib.GatherV(in, own(), out, sizes_.data(), nullptr, kBytes, 0, of_.comm, nullptr); return;
      case Kind::Scatter: lib.Scatter(in, out, part_, kBytes, 0, of_.comm, nullptr); return;
      case Kind::Scatterv: lib.ScatterV(in, sizes_.data(), nullptr, out, own(), kBytes, 0, of_.comm, nullptr); return;
    }
  }

  void run_mpi() {
    const MpiBelow& below = mpi();
    const Handle byte = handles().byte, real = handles().floats, sum = handles().sum, comm = of_.handle;
    const int part = static_cast<int>(part_), floats = static_cast<int>(part_ / sizeof(float));
    const int mine = counts_[static_cast<size_t>(of_.rank)];
    std::byte *const in = given_.data(), *const out = got_.data();
    switch (kind_) {
      case Kind::Barrier: below.Barrier(comm); return;
      case Kind::Bcast: below.Bcast(in, part, byte, 0, comm); return;
      case Kind::Allreduce: below.Allreduce(in, out, floats, real, sum, comm); return;
      case Kind::Reduce: below.Reduce(in, out, floats, real, sum, 0, comm); return;
      case Kind::ReduceScatterBlock: below.Reduce_scatter_block(in, out, floats, real, sum, comm); return;
      case Kind::ReduceScatter: below.Reduce_scatter(in, out, float_counts_.data(), real, sum, comm); return;
      case Kind::Allgather: below.Allgather(in, part, byte, out, part, byte, comm); return;
      case Kind::Allgatherv: below.Allgatherv(in, mine, byte, out, counts_.data(), at_.data(), byte, comm); return;
      case Kind::Alltoall: below.Alltoall(in, part, byte, out, part, byte, comm); return;
      case Kind::Alltoallv:
        below.Alltoallv(in, counts_.data(), at_.data(), byte, out, counts_.data(), at_.data(), byte, comm);
        return;
      case Kind::Gather: below.Gather(in, part, byte, out, part, byte, 0, comm); return;
      case Kind::Gatherv: below.Gatherv(in, mine, byte, out, counts_.data(), at_.data(), byte, 0, comm); return;
      case Kind::Scatter: below.Scatter(in, part, byte, out, part, byte, 0, comm); return;
      case Kind::Scatterv: below.Scatterv(in, counts_.data(), at_.data(), byte, out, mine, byte, 0, comm); return;
    }
  }

  Communicator& of_;
  const Kind kind_;
  const uint64_t part_;
  std::vector<int> counts_, at_, float_counts_;
  std::vector<size_t> sizes_;
  std::vector<std::byte> given_, got_;
};

// Bytes of a rank's part; the same on all ranks.
uint64_t part_of(Kind kind, size_t size_class, int ranks) {
  if (kind == Kind::Barrier) return 0;
  uint64_t bytes = uint64_t{1} << (size_class - 1);
  const bool is_total = kind == Kind::ReduceScatter || kind == Kind::ReduceScatterBlock || kind == Kind::Allgatherv;
  if (is_total) bytes /= static_cast<uint64_t>(ranks);
  bytes = std::min(bytes, kMostMemory / static_cast<uint64_t>(ranks));
  return std::max<uint64_t>(bytes / 4 * 4, 4);
}

using Seconds = std::array<double, 2>;  // ccom's, MPI's

double seconds_of(Trial& trial, bool ccom, int calls) {
  const auto begin = Clock::now();
  for (int i = 0; i < calls; ++i) trial.run(ccom);
  return std::chrono::duration<double>(Clock::now() - begin).count() / calls;
}

// The least of some rounds, on the slowest rank.
Seconds agreed(Trial& trial, const Communicator& of, int rounds, int calls) {
  Seconds mine, slowest;
  mine.fill(std::numeric_limits<double>::max());
  for (int round = 0; round < rounds; ++round) {
    for (const bool ccom : {true, false}) {
      mpi().Barrier(of.handle);
      double& least = mine[ccom ? 0 : 1];
      least = std::min(least, seconds_of(trial, ccom, calls));
    }
  }
  mpi().Allreduce(mine.data(), slowest.data(), 2, handles().doubles, handles().max, of.handle);
  return slowest;
}

// A round is as long as a program's loop would be: in a short one rooted calls only begin to run ahead of each other,
// and buffers are not yet where the ways leave them. Where ranks share processors a call of an MPI that polls takes
// milliseconds: few calls have to do.
bool is_ccom_faster(Communicator& of, Kind kind, uint64_t part) {
  Trial trial(of, kind, part);
  for (const bool ccom : {true, false}) trial.run(ccom);
  int calls = 1;
  for (;; calls = std::min(4 * calls, kMostCalls)) {  // ccom's calls find out meanwhile what is fastest for them
    const Seconds taken = agreed(trial, of, 1, calls);
    const double longer = std::max(taken[0], taken[1]), shorter = std::min(taken[0], taken[1]);
    if (longer > kLongCall && longer > kClear * shorter) return taken[0] < taken[1];
    if (longer * calls >= kRoundSeconds || calls == kMostCalls) break;
  }
  const Seconds taken = agreed(trial, of, kRounds, calls);
  return taken[0] <= kMargin * taken[1];
}

}  // namespace

Way measure(Communicator& of, Kind kind, size_t size_class) {
  const InCall in_call;
  if (kind == Kind::Barrier || size_class > 0)
    return is_ccom_faster(of, kind, part_of(kind, size_class, of.size)) ? Way::Ccom : Way::Mpi;
  // Whose sizes no rank knows: ccom's if it is not slower with short and with long parts.
  for (const uint64_t part : kUnsizedParts)
    if (!is_ccom_faster(of, kind, part)) return Way::Mpi;
  return Way::Ccom;
}

}  // namespace ccom::mpi
