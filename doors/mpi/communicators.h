// SPDX-License-Identifier: Apache-2.0
//
// Which communicator of ccom's stands for one of MPI's. It is started by the first call that is to be taken there, by
// all of its ranks in that call: as a part of MPI_COMM_WORLD's, else by an id of its own. It ends with MPI's, whose
// attribute it is.
//
// Threads: MPI allows one collective call at a time on a communicator. The table of communicators has a lock; each
// thread remembers its last one.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "doors/mpi/ccom_library.h"
#include "doors/mpi/handles.h"
#include "doors/mpi/statistics.h"

namespace ccom::mpi {

enum class Mode : uint8_t { Auto, All, Off };  // CCOM_MPI

// Sizes by their powers of two: class c has 2^(c-1) to 2^c - 1 bytes; what is longer belongs to the last one. Calls of
// which no rank knows all sizes have the first.
inline constexpr size_t kSizeClasses = 24;
size_t class_of(uint64_t bytes);

enum class Way : uint8_t { Unknown, Ccom, Mpi };

struct Channel;

struct Communicator {
  Handle handle = 0;
  int rank = 0, size = 0;
  ccomComm_t comm = nullptr;
  bool is_tried = false;       // to be started
  Fate refusal = Fate::Taken;  // why no call of it is ever taken
  std::array<std::array<Way, kSizeClasses>, kKinds> ways{};
  int error_code = 0;                              // of MPI, made for its error
  std::vector<std::shared_ptr<Channel>> channels;  // of persistent calls
};

// The least of what all ranks of `over` say, for each number.
template <size_t n>
bool agree(std::array<int, n>& numbers, Handle over) {
  std::array<int, n> mine = numbers;
  return mpi().Allreduce(mine.data(), numbers.data(), static_cast<int>(n), handles().ints, handles().min, over) ==
         kSuccess;
}

// The process's: settings, communicators, statistics.
class Process {
 public:
  static Process& get();

  // After MPI_Init, collective over MPI_COMM_WORLD: all ranks get the settings of rank 0. A process whose MPI_Init was
  // not seen has its own.
  void begin(bool all_ranks_do);
  // The communicator of that handle, which exists in MPI; null: this process can have none now. Collective if `starts`.
  Communicator* find(Handle handle) {
    if (last_.handle == handle && last_.generation == generation_.load(std::memory_order_acquire)) return last_.of;
    return look_up(handle);
  }
  // Collective over it: starts ccom's. Afterwards either `comm` is there or a refusal.
  void start(Communicator& of);

  Mode mode = Mode::Auto;
  Statistics statistics;
  bool is_multiple = false;  // MPI_THREAD_MULTIPLE
  Handle self = 0;           // of this rank alone, where errors are returned, while the process is in use

 private:
  struct Last {
    Handle handle = 0;
    uint64_t generation = 0;
    Communicator* of = nullptr;
  };
  struct Table;

  Process();
  Communicator* look_up(Handle handle);
  bool can_be_part(Handle handle, const Communicator& of, std::vector<int>& ranks);
  ccomResult_t start_by_id(Communicator& of, const ccomConfig_t& config);
  void forget(Handle handle);
  void end();
  void report();

  static int on_delete(Handle handle, int key, void* attribute, void* user);

  Table* const table_;
  std::atomic<int> state_ = 0;  // 0: not begun, 1: in use, 2: over
  int key_ = -1;
  bool has_all_ranks_ = false;
  Communicator* world_ = nullptr;
  std::atomic<uint64_t> generation_ = 1;
  static thread_local Last last_;
};

}  // namespace ccom::mpi
