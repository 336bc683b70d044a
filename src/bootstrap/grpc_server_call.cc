// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/grpc_server_call.h"

#include <new>

namespace ccom {
namespace {

// Texts that can be sent without memory.
const grpc::Status kNotYet(grpc::StatusCode::UNAVAILABLE, "the previous rendezvous at this address has not ended yet");
const grpc::Status kAbsent(grpc::StatusCode::UNAVAILABLE, "the rank's connection to the rendezvous server has broken");
const grpc::Status kUnreadable(grpc::StatusCode::INVALID_ARGUMENT, "malformed request, or another version of ccom");
const grpc::Status kNoMemory(grpc::StatusCode::RESOURCE_EXHAUSTED, "out of memory");
const grpc::Status kRelayHasEnded(grpc::StatusCode::UNAVAILABLE, "the relay has ended");

const grpc::Status& status_of(Refusal refusal) {
  switch (refusal) {
    case Refusal::None: break;
    case Refusal::NotYet: return kNotYet;
    case Refusal::Absent: return kAbsent;
    case Refusal::Unreadable: return kUnreadable;
    case Refusal::NoMemory: return kNoMemory;
    case Refusal::RelayHasEnded: return kRelayHasEnded;
  }
  return grpc::Status::OK;
}

// Shares the bytes, which may be many.
grpc::ByteBuffer buffer_of(const AnswerText& answer) {
  auto* const shared = new AnswerText(answer);
  const auto release = [](void* held) { delete static_cast<AnswerText*>(held); };
  const grpc::Slice slice(const_cast<char*>(answer->data()), answer->size(), release, shared);
  return {&slice, 1};
}

}  // namespace

void ServerCall::finish(const AnswerText& answer, Refusal refusal) noexcept {
  try {
    if (answer != nullptr) answer_ = buffer_of(answer);
    Finish(status_of(refusal));
  } catch (const std::bad_alloc&) {  // gRPC has forgotten it, and its server will not end
  }
}

}  // namespace ccom
