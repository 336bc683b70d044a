// SPDX-License-Identifier: Apache-2.0
//
// What was taken and what was handed down, and why: CCOM_MPI_STATS=1.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

namespace ccom::mpi {

enum class Kind : uint8_t {
  Allreduce,
  Reduce,
  Bcast,
  Allgather,
  Allgatherv,
  ReduceScatter,
  ReduceScatterBlock,
  Alltoall,
  Alltoallv,
  Gather,
  Gatherv,
  Scatter,
  Scatterv,
  Barrier,
};
inline constexpr size_t kKinds = 14;
const char* name_of(Kind kind);  // "MPI_Allreduce"

// Taken, or why not.
enum class Fate : uint8_t {
  Taken,
  Slower,        // MPI was measured to be faster
  Type,          // a reduction of a type that ccom lacks, or of a derived one
  Op,            // with an operator that ccom lacks, or one of the program's
  Empty,         // nothing to move
  OneRank,       // a communicator of this rank alone
  Inter,         // an intercommunicator
  NotStarted,    // ccom could not start
  Invalid,       // arguments: MPI says what is wrong with them
  OutsideWorld,  // before MPI_Init or after MPI_Finalize: of a session
};
inline constexpr size_t kFates = 10;

class Statistics {
 public:
  void count(Kind kind, Fate fate, uint64_t bytes) {
    if (!is_on) return;
    calls_[static_cast<size_t>(kind)][static_cast<size_t>(fate)].fetch_add(1, std::memory_order_relaxed);
    if (fate == Fate::Taken) bytes_[static_cast<size_t>(kind)].fetch_add(bytes, std::memory_order_relaxed);
  }

  static constexpr size_t kNumbers = kKinds * (kFates + 1);
  // Calls by kind and fate, then bytes by kind.
  std::array<long long, kNumbers> numbers() const;
  // A table of the sums of that many ranks.
  static std::string table(const std::array<long long, kNumbers>& sums, int ranks);

  bool is_on = false;

 private:
  std::array<std::array<std::atomic<uint64_t>, kFates>, kKinds> calls_{};
  std::array<std::atomic<uint64_t>, kKinds> bytes_{};
};

}  // namespace ccom::mpi
