// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/grpc_presence.h"

#include "base/thread.h"

namespace ccom {

void GrpcPresence::show(wire::RendezvousService::Stub& stub, const wire::Request& request) {
  const SignalsBlocked blocked;
  reader_ = stub.AsyncExchange(&context_, request, &queue_);
  reader_->Finish(&answer_, &status_, nullptr);
}

bool GrpcPresence::has_ended() {
  if (reader_ == nullptr || has_ended_) return has_ended_;
  void* tag = nullptr;
  bool is_ok = false;
  const SignalsBlocked blocked;
  const auto next = queue_.AsyncNext(&tag, &is_ok, gpr_now(GPR_CLOCK_MONOTONIC));
  if (next == grpc::CompletionQueue::GOT_EVENT) has_ended_ = true;
  return has_ended_;
}

void GrpcPresence::end() {
  if (reader_ == nullptr) return;
  context_.TryCancel();
  drain(queue_);
  reader_.reset();
}

void drain(grpc::CompletionQueue& queue) {
  queue.Shutdown();
  void* tag = nullptr;
  bool is_ok = false;
  while (queue.Next(&tag, &is_ok)) {
  }
}

}  // namespace ccom
