// SPDX-License-Identifier: Apache-2.0
//
// The requests of other hosts to the server of a rendezvous, or to a relay, from their arrival until they are answered.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

namespace ccom {

// Serialized once for all who are told it.
using AnswerText = std::shared_ptr<const std::string>;

// Why a request gets no answer. Who asks tries again after NotYet, Absent and RelayHasEnded.
enum class Refusal : uint8_t {
  None,
  NotYet,      // the previous rendezvous at this address has not ended
  Absent,      // the presence of who wants to join has broken
  Unreadable,  // the request
  NoMemory,
  RelayHasEnded,
};

// One that somebody waits for. It ends itself when it is finished, which FinishedCalls do.
class PendingCall {
 public:
  // Tells who asks that the request is there. Before it is finished.
  virtual void acknowledge() = 0;
  uint64_t number() const { return number_; }  // never used twice in a process

 protected:
  PendingCall() = default;
  ~PendingCall() = default;
  // Sends the answer, or says why there is none.
  virtual void finish(const AnswerText& answer, Refusal refusal) noexcept = 0;

 private:
  friend class FinishedCalls;
  static inline std::atomic<uint64_t> last_number = 0;
  const uint64_t number_ = ++last_number;
  AnswerText answer_;
  Refusal refusal_ = Refusal::None;
  PendingCall* next_ = nullptr;
  bool is_finished_ = false;
};

// Calls with their answers, which are sent when it goes out of scope: so, where it is older than a lock, after that.
// Needs no memory, so no call is forgotten when there is none. A call that has been added stays as it was.
class FinishedCalls {
 public:
  FinishedCalls() = default;
  ~FinishedCalls();
  FinishedCalls(const FinishedCalls&) = delete;
  FinishedCalls& operator=(const FinishedCalls&) = delete;

  void add(PendingCall* call, const AnswerText& answer);
  void add(PendingCall* call, Refusal refusal);

 private:
  PendingCall* first_ = nullptr;
};

}  // namespace ccom
