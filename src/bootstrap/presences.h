// SPDX-License-Identifier: Apache-2.0
//
// The calls that ranks and relays leave open at the rendezvous server, each of which breaks when its process dies: of
// members, and of those that are about to join.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "bootstrap/gathering.h"
#include "bootstrap/pending_call.h"

namespace ccom {

// Not thread-safe.
class Presences {
 public:
  // answer: to those that end.
  explicit Presences(AnswerText answer) : answer_(std::move(answer)) {}

  bool has(const Caller& caller) const { return calls_.contains(caller.token); }
  // Acknowledges it. A retry replaces the call whose connection was lost.
  void begin(const Caller& caller, PendingCall* call, FinishedCalls& finished);
  void end(const Caller& caller, FinishedCalls& finished);
  void end_all(FinishedCalls& finished);
  void refuse_all(Refusal refusal, FinishedCalls& finished);
  // Whose call it was, if it is here. Does not finish it.
  std::optional<Caller> forget(const PendingCall* call);

 private:
  struct Presence {
    PendingCall* call;
    Caller caller;
  };
  const AnswerText answer_;
  std::map<uint64_t, Presence> calls_;  // by token
};

}  // namespace ccom
