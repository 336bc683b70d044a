// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/grpc_call.h"

#include <new>

#include "base/log.h"
#include "base/thread.h"
#include "bootstrap/grpc_channel.h"

namespace ccom {
namespace {

using namespace std::chrono_literals;

constexpr auto kEndTime = 3s;

}  // namespace

void GrpcCall::start(wire::RendezvousService::Stub& stub, const wire::Request& request) {
  const SignalsBlocked blocked;
  if (state_ == nullptr) state_ = std::make_unique<State>();
  state_->reader = stub.AsyncExchange(&state_->context, request, &state_->queue);
  state_->reader->Finish(&state_->answer, &state_->status, nullptr);
}

void GrpcCall::start(wire::RendezvousService::Stub& stub, const wire::Request& request, Deadline deadline) {
  state_ = std::make_unique<State>();
  state_->context.set_deadline(grpc_deadline(deadline));
  start(stub, request);
}

void GrpcCall::start_open(wire::RendezvousService::Stub& stub, const wire::Request& request) {
  end();
  const SignalsBlocked blocked;
  has_ended_ = is_acknowledged_ = false;
  state_ = std::make_unique<State>();
  state_->reader = stub.AsyncExchange(&state_->context, request, &state_->queue);
  state_->reader->ReadInitialMetadata(&is_acknowledged_);
  state_->reader->Finish(&state_->answer, &state_->status, nullptr);
}

bool GrpcCall::next(gpr_timespec when) {
  if (state_ == nullptr || has_ended_) return false;
  void* tag = nullptr;
  bool is_ok = false;
  const SignalsBlocked blocked;
  if (state_->queue.AsyncNext(&tag, &is_ok, when) != grpc::CompletionQueue::GOT_EVENT) return false;
  tag == nullptr ? has_ended_ = true : is_acknowledged_ = true;
  return true;
}

bool GrpcCall::wait(Deadline when) {
  (void)next(grpc_deadline(when));
  return has_ended_;
}

// Without an answer there is initial metadata as well: both events are taken then.
bool GrpcCall::wait_until_open(Deadline when) {
  if (!is_acknowledged_) (void)next(grpc_deadline(when));
  return is_acknowledged_ || has_ended();
}

bool GrpcCall::has_ended() {
  (void)next(gpr_now(GPR_CLOCK_MONOTONIC));
  return has_ended_;
}

// As gRPC asks for before a queue is destroyed. False if what was started does not end.
bool GrpcCall::drain(State& state) {
  try {
    state.context.TryCancel();
    state.queue.Shutdown();
    const gpr_timespec limit = grpc_deadline(Deadline::after(kEndTime));
    void* tag = nullptr;
    bool is_ok = false;
    auto next = grpc::CompletionQueue::GOT_EVENT;
    while (next == grpc::CompletionQueue::GOT_EVENT) next = state.queue.AsyncNext(&tag, &is_ok, limit);
    return next == grpc::CompletionQueue::SHUTDOWN;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

void GrpcCall::end() {
  if (state_ == nullptr) return;
  const SignalsBlocked blocked;
  if (!drain(*state_)) {
    log(LogLevel::Error, "gRPC has lost a request, whose connection stays open");
    (void)state_.release();
  }
  state_.reset();
}

}  // namespace ccom
