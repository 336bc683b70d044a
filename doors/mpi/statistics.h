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

// How the program waits for a call: in the call itself, or for a request that it starts as often as it likes.
enum class Form : uint8_t { Blocking, Persistent };
inline constexpr size_t kForms = 2;

std::string name_of(Kind kind, Form form);  // "MPI_Allreduce", "MPI_Allreduce_init"

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
  TooMany,       // persistent calls of a communicator
};
inline constexpr size_t kFates = 11;

class Statistics {
 public:
  // Of persistent calls each start is one that was taken.
  void count(Kind kind, Form form, Fate fate, uint64_t bytes) {
    if (!is_on) return;
    const size_t row = static_cast<size_t>(form) * kKinds + static_cast<size_t>(kind);
    calls_[row][static_cast<size_t>(fate)].fetch_add(1, std::memory_order_relaxed);
    if (fate == Fate::Taken) bytes_[row].fetch_add(bytes, std::memory_order_relaxed);
  }

  static constexpr size_t kRows = kForms * kKinds;
  static constexpr size_t kNumbers = kRows * (kFates + 1);
  // Calls by row and fate, then bytes by row; a row is a form and a kind.
  std::array<long long, kNumbers> numbers() const;
  // A table of the sums of that many ranks.
  static std::string table(const std::array<long long, kNumbers>& sums, int ranks);

  bool is_on = false;

 private:
  std::array<std::array<std::atomic<uint64_t>, kFates>, kRows> calls_{};
  std::array<std::atomic<uint64_t>, kRows> bytes_{};
};

}  // namespace ccom::mpi
