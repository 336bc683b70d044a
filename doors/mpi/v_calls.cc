// SPDX-License-Identifier: Apache-2.0
//
// MPI's functions of parts of different lengths.
#include <algorithm>
#include <cstring>
#include <numeric>

#include "doors/mpi/arguments.h"
#include "doors/mpi/call.h"
#include "doors/mpi/elements.h"
#include "doors/mpi/exported.h"
#include "doors/mpi/large_counts.h"

namespace ccom::mpi {
namespace {

// Parts of a buffer, one for each rank: where they lie in the program's elements, and in bytes for ccom.
template <typename Count, typename Place>
class Parts {
 public:
  Parts(const Elements& of, const Count* counts, const Place* displacements, int ranks)
      : elements_(of),
        counts_(counts),
        displacements_(displacements),
        ranks_(counts == nullptr || displacements == nullptr ? 0 : ranks),
        is_valid_(ranks_ == ranks) {
    if (counts == nullptr || displacements == nullptr) return;
    bytes_.reserve(static_cast<size_t>(ranks_));
    for (int i = 0; i < ranks_; ++i) {
      is_valid_ &= counts[i] >= 0;
      bytes_.push_back(of.bytes_of(std::max<int64_t>(counts[i], 0)));
    }
    total_ = std::accumulate(bytes_.begin(), bytes_.end(), uint64_t{0});
  }

  bool is_valid() const { return is_valid_; }
  bool is_buffer(const void* buffer) const { return mpi::is_buffer(buffer, elements_, total_ > 0 ? 1 : 0); }
  uint64_t total() const { return total_; }
  uint64_t bytes(int rank) const { return bytes_[static_cast<size_t>(rank)]; }
  const size_t* counts() const { return bytes_.data(); }
  bool is_equal() const {
    return std::adjacent_find(bytes_.begin(), bytes_.end(), std::not_equal_to<>()) == bytes_.end();
  }
  // One behind the other, in the order of ranks.
  bool is_in_a_row() const {
    if (!elements_.is_plain) return false;
    int64_t next = 0;
    for (int i = 0; i < ranks_; ++i) {
      if (counts_[i] > 0 && displacements_[i] != next) return false;
      next += counts_[i];
    }
    return true;
  }

  // What ccom reads or writes: the program's buffer, from its first part on, or one with the parts in a row. `rowed`:
  // parts have to be in a row.
  std::byte* place(void* buffer, Room& room, bool rowed) {
    is_here_ = elements_.is_plain && (!rowed || is_in_a_row());
    offsets_.assign(static_cast<size_t>(ranks_), 0);
    if (!is_here_) {
      std::exclusive_scan(bytes_.begin(), bytes_.end(), offsets_.begin(), size_t{0});
      return room.take(total_);
    }
    int64_t first = 0;  // displacements may be negative
    for (int i = 0; i < ranks_; ++i)
      if (counts_[i] > 0) first = std::min<int64_t>(first, displacements_[i]);
    for (size_t i = 0; i < offsets_.size(); ++i)
      if (counts_[i] > 0) offsets_[i] = static_cast<size_t>((displacements_[i] - first) * elements_.extent);
    return elements_.at(buffer, first);
  }
  // Behind place().
  const size_t* offsets() const { return offsets_.data(); }
  size_t offset(int rank) const { return offsets_[static_cast<size_t>(rank)]; }
  void pack(const void* buffer, std::byte* to, int rank, Handle comm) const {
    if (!is_here_ && bytes(rank) > 0)
      elements_.pack(elements_.at(buffer, displacements_[rank]), counts_[rank], to + offset(rank), comm);
  }
  void pack_all(const void* buffer, std::byte* to, Handle comm) const {
    for (int i = 0; i < ranks_; ++i) pack(buffer, to, i, comm);
  }
  void unpack_all(const std::byte* from, void* buffer, Handle comm) const {
    for (int i = 0; i < ranks_ && !is_here_; ++i)
      if (bytes(i) > 0) elements_.unpack(from + offset(i), elements_.at(buffer, displacements_[i]), counts_[i], comm);
  }

 private:
  const Elements& elements_;
  const Count* const counts_;
  const Place* const displacements_;
  const int ranks_;
  bool is_valid_ = true;  // lists without negative counts
  bool is_here_ = false;
  uint64_t total_ = 0;
  std::vector<size_t> bytes_, offsets_;
};

// Parts of equal lengths, which all ranks know to be equal, need no agreement on them.
template <typename Below, typename Count, typename Place>
int allgatherv(Below below, const void* send, Count sendcount, Handle sendtype, void* recv, const Count* counts,
               const Place* displacements, Handle recvtype, Handle comm) {
  Call call(Kind::Allgatherv, comm);
  if (!call.is_possible()) return below(send, sendcount, sendtype, recv, counts, displacements, recvtype, comm);
  const Elements theirs(recvtype);
  const Elements mine(is_in_place(send) ? recvtype : sendtype);
  Parts parts(theirs, counts, displacements, call.size());
  call.demand(theirs.is_valid && mine.is_valid && parts.is_valid() && parts.is_buffer(recv) &&
              (is_in_place(send) || (sendcount >= 0 && is_buffer(send, mine, sendcount))));
  const bool is_equal = parts.is_valid() && parts.is_equal();
  const bool is_taken =
      is_equal ? call.is_taken(parts.bytes(0), Kind::Allgather) : call.is_taken(parts.total(), Kind::Allgatherv);
  if (!is_taken) return below(send, sendcount, sendtype, recv, counts, displacements, recvtype, comm);
  const uint64_t bytes = parts.bytes(call.rank());
  if (!is_in_place(send) && mine.bytes_of(sendcount) != bytes) return call.forbid(kUnequal);
  Room given_room, got_room;
  std::byte* const got = parts.place(recv, got_room, is_equal);
  std::byte* const own = got + parts.offset(call.rank());
  const std::byte* from = own;
  if (is_in_place(send))
    parts.pack(recv, got, call.rank(), call.handle());
  else
    from = given_room.packed(mine, send, sendcount, call.handle());
  const ccomResult_t result = is_equal ? ccom_library().AllGather(from, got, bytes, kBytes, call.comm(), nullptr)
                                       : ccom_library().AllGatherV(from, bytes, got, parts.counts(), parts.offsets(),
                                                                   kBytes, call.comm(), nullptr);
  if (result == ccomSuccess) parts.unpack_all(got, recv, call.handle());
  return call.end(result);
}

template <typename Below, typename Count, typename Place>
int gatherv(Below below, const void* send, Count sendcount, Handle sendtype, void* recv, const Count* counts,
            const Place* displacements, Handle recvtype, int root, Handle comm) {
  Call call(Kind::Gatherv, comm);
  if (!call.is_possible()) return below(send, sendcount, sendtype, recv, counts, displacements, recvtype, root, comm);
  const bool is_root = call.rank() == root;
  const bool is_here = is_root && is_in_place(send);
  const Elements theirs(is_root ? recvtype : sendtype);
  const Elements mine(is_here ? recvtype : sendtype);
  Parts parts(theirs, counts, displacements, is_root ? call.size() : 0);
  call.demand(theirs.is_valid && mine.is_valid && parts.is_valid() && call.has_rank(root) &&
              (is_here || (sendcount >= 0 && is_buffer(send, mine, sendcount))) && (!is_root || parts.is_buffer(recv)));
  const uint64_t bytes = !is_here ? mine.bytes_of(sendcount) : parts.is_valid() ? parts.bytes(root) : 0;
  if (!call.is_taken_unsized(bytes))
    return below(send, sendcount, sendtype, recv, counts, displacements, recvtype, root, comm);
  Room given_room, got_room;
  std::byte* const got = is_root ? parts.place(recv, got_room, false) : nullptr;
  const std::byte* from = nullptr;
  if (is_here) {
    parts.pack(recv, got, root, call.handle());
    from = got + parts.offset(root);
  } else {
    from = given_room.packed(mine, send, sendcount, call.handle());
  }
  const ccomResult_t result =
      ccom_library().GatherV(from, bytes, got, is_root ? parts.counts() : nullptr, is_root ? parts.offsets() : nullptr,
                             kBytes, root, call.comm(), nullptr);
  if (is_root && result == ccomSuccess) parts.unpack_all(got, recv, call.handle());
  return call.end(result);
}

template <typename Below, typename Count, typename Place>
int scatterv(Below below, const void* send, const Count* counts, const Place* displacements, Handle sendtype,
             void* recv, Count recvcount, Handle recvtype, int root, Handle comm) {
  Call call(Kind::Scatterv, comm);
  if (!call.is_possible()) return below(send, counts, displacements, sendtype, recv, recvcount, recvtype, root, comm);
  const bool is_root = call.rank() == root;
  const bool is_here = is_root && is_in_place(recv);
  const Elements theirs(is_root ? sendtype : recvtype);
  const Elements mine(is_here ? sendtype : recvtype);
  Parts parts(theirs, counts, displacements, is_root ? call.size() : 0);
  call.demand(theirs.is_valid && mine.is_valid && parts.is_valid() && call.has_rank(root) &&
              (is_here || (recvcount >= 0 && is_buffer(recv, mine, recvcount))) && (!is_root || parts.is_buffer(send)));
  const uint64_t bytes = !is_here ? mine.bytes_of(recvcount) : parts.is_valid() ? parts.bytes(root) : 0;
  if (!call.is_taken_unsized(bytes))
    return below(send, counts, displacements, sendtype, recv, recvcount, recvtype, root, comm);
  Room given_room, got_room;
  std::byte* const from = is_root ? parts.place(const_cast<void*>(send), given_room, false) : nullptr;
  if (is_root) parts.pack_all(send, from, call.handle());
  std::byte* got = nullptr;
  if (is_here)
    got = from + parts.offset(root);  // in place: ccom does not write there
  else
    got = got_room.place(mine, recv, recvcount);
  const ccomResult_t result =
      ccom_library().ScatterV(from, is_root ? parts.counts() : nullptr, is_root ? parts.offsets() : nullptr, got, bytes,
                              kBytes, root, call.comm(), nullptr);
  if (!is_here && !mine.is_plain && result == ccomSuccess) mine.unpack(got, recv, recvcount, call.handle());
  return call.end(result);
}

template <typename Below, typename Count, typename Place>
int alltoallv(Below below, const void* send, const Count* sendcounts, const Place* sdispls, Handle sendtype, void* recv,
              const Count* recvcounts, const Place* rdispls, Handle recvtype, Handle comm) {
  Call call(Kind::Alltoallv, comm);
  if (!call.is_possible()) return below(send, sendcounts, sdispls, sendtype, recv, recvcounts, rdispls, recvtype, comm);
  const bool is_here = is_in_place(send);
  const Elements theirs(recvtype);
  const Elements mine(is_here ? recvtype : sendtype);
  Parts from_all(theirs, recvcounts, rdispls, call.size());
  Parts to_all(mine, is_here ? recvcounts : sendcounts, is_here ? rdispls : sdispls, call.size());
  call.demand(theirs.is_valid && mine.is_valid && from_all.is_valid() && to_all.is_valid() &&
              from_all.is_buffer(recv) && (is_here || to_all.is_buffer(send)));
  if (!call.is_taken_unsized(to_all.total()))
    return below(send, sendcounts, sdispls, sendtype, recv, recvcounts, rdispls, recvtype, comm);
  Room given_room, got_room;
  std::byte* const got = from_all.place(recv, got_room, false);
  if (is_here) {
    from_all.pack_all(recv, got, call.handle());
    const ccomResult_t result =
        ccom_library().AlltoAllV(got, from_all.counts(), from_all.offsets(), got, from_all.counts(), from_all.offsets(),
                                 kBytes, call.comm(), nullptr);
    if (result == ccomSuccess) from_all.unpack_all(got, recv, call.handle());
    return call.end(result);
  }
  std::byte* const from = to_all.place(const_cast<void*>(send), given_room, false);
  to_all.pack_all(send, from, call.handle());
  const ccomResult_t result = ccom_library().AlltoAllV(from, to_all.counts(), to_all.offsets(), got, from_all.counts(),
                                                       from_all.offsets(), kBytes, call.comm(), nullptr);
  if (result == ccomSuccess) from_all.unpack_all(got, recv, call.handle());
  return call.end(result);
}

template <typename Below, typename Count>
int reduce_scatter(Below below, const void* send, void* recv, const Count* counts, Handle type, Handle op,
                   Handle comm) {
  Call call(Kind::ReduceScatter, comm);
  if (!call.is_possible() || counts == nullptr) return below(send, recv, counts, type, op, comm);
  const Reduced reduced(type, op);
  int64_t all = 0;
  bool is_equal = true;
  for (int i = 0; i < call.size(); ++i) {
    call.demand(counts[i] >= 0);
    all += counts[i];
    is_equal &= counts[i] == counts[0];
  }
  call.demand(is_buffer(recv, reduced.bytes_of(counts[call.rank()])) &&
              (is_in_place(send) || is_buffer(send, reduced.bytes_of(all))));
  if (!call.is_taken(reduced.bytes_of(all), is_equal ? Kind::ReduceScatterBlock : Kind::ReduceScatter, reduced.type,
                     reduced.op))
    return below(send, recv, counts, type, op, comm);
  Room room;
  const uint64_t bytes = reduced.bytes_of(counts[call.rank()]);
  void* const own = room.result(send, recv, bytes);
  const void* const from = is_in_place(send) ? recv : send;
  ccomResult_t result = ccomSuccess;
  if (is_equal) {
    result = ccom_library().ReduceScatter(from, own, static_cast<size_t>(counts[0]), reduced.type->type, reduced.op->op,
                                          call.comm(), nullptr);
  } else {
    const std::vector<size_t> parts(counts, counts + call.size());
    result = ccom_library().ReduceScatterV(from, own, parts.data(), reduced.type->type, reduced.op->op, call.comm(),
                                           nullptr);
  }
  if (own != recv && result == ccomSuccess) std::memcpy(recv, own, bytes);
  return call.end(result);
}

}  // namespace
}  // namespace ccom::mpi

using namespace ccom::mpi;  // NOLINT(google-build-using-namespace): the functions below are MPI's

int MPI_Allgatherv(const void* send, int sendcount, Handle sendtype, void* recv, const int* counts,
                   const int* displacements, Handle recvtype, Handle comm) {
  return allgatherv(mpi().Allgatherv, send, sendcount, sendtype, recv, counts, displacements, recvtype, comm);
}
int MPI_Allgatherv_c(const void* send, MpiCount sendcount, Handle sendtype, void* recv, const MpiCount* counts,
                     const Aint* displacements, Handle recvtype, Handle comm) {
  return allgatherv(large_or_not(mpi().Allgatherv_c, mpi().Allgatherv, comm), send, sendcount, sendtype, recv, counts,
                    displacements, recvtype, comm);
}
int MPI_Gatherv(const void* send, int sendcount, Handle sendtype, void* recv, const int* counts,
                const int* displacements, Handle recvtype, int root, Handle comm) {
  return gatherv(mpi().Gatherv, send, sendcount, sendtype, recv, counts, displacements, recvtype, root, comm);
}
int MPI_Gatherv_c(const void* send, MpiCount sendcount, Handle sendtype, void* recv, const MpiCount* counts,
                  const Aint* displacements, Handle recvtype, int root, Handle comm) {
  return gatherv(large_or_not(mpi().Gatherv_c, mpi().Gatherv, comm, root), send, sendcount, sendtype, recv, counts,
                 displacements, recvtype, root, comm);
}
int MPI_Scatterv(const void* send, const int* counts, const int* displacements, Handle sendtype, void* recv,
                 int recvcount, Handle recvtype, int root, Handle comm) {
  return scatterv(mpi().Scatterv, send, counts, displacements, sendtype, recv, recvcount, recvtype, root, comm);
}
int MPI_Scatterv_c(const void* send, const MpiCount* counts, const Aint* displacements, Handle sendtype, void* recv,
                   MpiCount recvcount, Handle recvtype, int root, Handle comm) {
  return scatterv(large_or_not(mpi().Scatterv_c, mpi().Scatterv, comm, root), send, counts, displacements, sendtype,
                  recv, recvcount, recvtype, root, comm);
}
int MPI_Alltoallv(const void* send, const int* sendcounts, const int* sdispls, Handle sendtype, void* recv,
                  const int* recvcounts, const int* rdispls, Handle recvtype, Handle comm) {
  return alltoallv(mpi().Alltoallv, send, sendcounts, sdispls, sendtype, recv, recvcounts, rdispls, recvtype, comm);
}
int MPI_Alltoallv_c(const void* send, const MpiCount* sendcounts, const Aint* sdispls, Handle sendtype, void* recv,
                    const MpiCount* recvcounts, const Aint* rdispls, Handle recvtype, Handle comm) {
  return alltoallv(large_or_not(mpi().Alltoallv_c, mpi().Alltoallv, comm), send, sendcounts, sdispls, sendtype, recv,
                   recvcounts, rdispls, recvtype, comm);
}
int MPI_Reduce_scatter(const void* send, void* recv, const int* counts, Handle type, Handle op, Handle comm) {
  return reduce_scatter(mpi().Reduce_scatter, send, recv, counts, type, op, comm);
}
int MPI_Reduce_scatter_c(const void* send, void* recv, const MpiCount* counts, Handle type, Handle op, Handle comm) {
  return reduce_scatter(large_or_not(mpi().Reduce_scatter_c, mpi().Reduce_scatter, comm, kOwnRanks), send, recv, counts,
                        type, op, comm);
}
