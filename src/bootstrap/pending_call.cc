// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/pending_call.h"

#include <utility>

namespace ccom {

void FinishedCalls::add(PendingCall* call, const AnswerText& answer) {
  if (!call->is_finished_) call->answer_ = answer;
  add(call, Refusal::None);
}

void FinishedCalls::add(PendingCall* call, Refusal refusal) {
  if (std::exchange(call->is_finished_, true)) return;
  call->refusal_ = refusal;
  call->next_ = std::exchange(first_, call);
}

FinishedCalls::~FinishedCalls() {
  while (first_ != nullptr) {
    PendingCall* const call = first_;
    first_ = call->next_;
    const AnswerText answer = std::move(call->answer_);
    call->finish(answer, call->refusal_);
  }
}

}  // namespace ccom
