// SPDX-License-Identifier: Apache-2.0
//
// Keeps the last calls of this process in a mapped file (CCOM_RECORD), where they are found after SIGKILL of all ranks.
//
// One file per process, with all its communicators: recording_format.h says what is in it, src/trace reads it. Its
// space is taken when it is made, so that a disk that fills up later ends nothing. A call costs two looks at the
// processor's counter and some twenty stores.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/call.h"
#include "base/mutex.h"
#include "base/status.h"
#include "observe/call_site.h"
#include "observe/recording_format.h"
#include "observe/ticks.h"

namespace ccom {

// Thread-safe. Lives as long as the process once it is of_process().
class Recorder {
 public:
  // This process's, by CCOM_RECORD and CCOM_RECORD_BYTES when it is first asked for; null if nobody wants one. A file
  // that cannot be made is logged, and null: what observes a job does not end it. ConfigError for a wrong number.
  static Result<Recorder*> of_process();
  // Makes a file in the folder, which no other process has: of this user alone, and of that size, rounded to pages. The
  // folder too if it is not there.
  static Result<std::unique_ptr<Recorder>> create(const std::string& folder, uint64_t bytes);
  // The process lives: by its liveness threads, so that the file says until when it did.
  static void note_alive();
  ~Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  const std::string& path() const { return path_; }

 private:
  friend class CallRecorder;
  Recorder(std::string path, void* memory, uint64_t bytes, TickClock clock);
  void describe_process();
  template <typename T>
  T* at(uint64_t offset) const {
    return reinterpret_cast<T*>(memory_ + offset);
  }

  // Of words from `begin` on.
  static auto words_of(const void* begin) {
    return [begin](size_t offset) {
      return recording::get(*reinterpret_cast<const recording::Word*>(static_cast<const std::byte*>(begin) + offset));
    };
  }
  recording::TextReference keep(std::string_view text) CCOM_REQUIRES(mutex_);
  void name_site(CallSite site) noexcept;
  uint32_t number_of_algorithm(std::string_view name) noexcept;
  recording::Communicator* open_place(uint64_t& place);
  void close_place(recording::Communicator& communicator, recording::PlaceState state);
  // The first of kBlock tickets.
  uint64_t claim() { return header_->claimed.fetch_add(recording::kBlock, std::memory_order_relaxed) + 1; }
  void note_time();

  const std::string path_;
  std::byte* const memory_;
  const recording::Layout layout_;
  const uint64_t bytes_;
  const TickClock clock_;
  const uint32_t generation_;  // of forks
  recording::Header* const header_;
  recording::Word* const sites_;
  recording::Record* const records_;
  std::atomic<uint64_t> next_point_{0};  // ticks
  Mutex mutex_;
  uint64_t points_ CCOM_GUARDED_BY(mutex_) = 0;
  std::unordered_map<std::string, recording::TextReference> texts_ CCOM_GUARDED_BY(mutex_);
  std::vector<std::string> algorithms_ CCOM_GUARDED_BY(mutex_);
};

// Records the calls of one communicator. Belongs to whoever has its turn.
class CallRecorder {
 public:
  struct Identity {
    uint64_t number = 0, parent = 0;
    Rank rank = 0;
    int nranks = 0;
    std::string_view name;
    std::string_view topology;         // "" of a part, whose parent has it
    std::string_view costs;            // what was measured at its start, likewise
    const std::vector<Rank>* origins;  // of a part; may be null
  };
  CallRecorder(Recorder& recorder, const Identity& identity);
  ~CallRecorder();
  CallRecorder(const CallRecorder&) = delete;
  CallRecorder& operator=(const CallRecorder&) = delete;

  // Of a call, or of sends and receives, whose number is 0 and whose count is in bytes.
  void begin(const CallDescriptor& call, CallSite site);
  void set_algorithm(std::string_view name);
  // In which way of its algorithm the call ran; before its end. Shown behind the algorithm.
  void set_way(std::string_view name);
  // Of what has begun.
  void set_count(uint64_t count);
  void begin_wait(Rank peer);
  void end_wait();
  void end(Code code);

 private:
  recording::Record& next_record();
  void show_origin();

  Recorder& recorder_;
  uint64_t place_ = 0, turn_ = 0;
  recording::Communicator* shared_;  // null: there was no room, nothing is recorded
  recording::Values current_{};
  uint64_t next_ = 0, end_ = 0;  // tickets of the block that it writes
  recording::Record* record_ = nullptr;
  uint64_t wait_begun_ = 0, waited_ = 0, longest_ = 0;
  Rank waits_for_ = -1, longest_peer_ = -1;
  std::string algorithm_, way_;
  uint32_t algorithm_number_ = 0, way_number_ = 0;  // way_number_: of way_ of algorithm_; 0: it has none
};

}  // namespace ccom
