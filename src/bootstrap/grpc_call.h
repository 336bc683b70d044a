// SPDX-License-Identifier: Apache-2.0
//
// One call of the rendezvous server, from the client's side.
#pragma once

#include <grpcpp/client_context.h>
#include <grpcpp/completion_queue.h>
#include <grpcpp/support/async_unary_call.h>

#include <atomic>
#include <memory>

#include "base/time.h"
#include "bootstrap/rendezvous.grpc.pb.h"

namespace ccom {

// gRPC is not safe against std::bad_alloc: one that passes through its functions can make it forget a call, whose end
// never comes. So no wait here is without a bound, and what such a call uses is not freed.
//
// Used by one thread; has_ended() by any. Signals are blocked inside the functions, not between them.
class GrpcCall {
 public:
  GrpcCall() = default;
  ~GrpcCall() { end(); }
  GrpcCall(const GrpcCall&) = delete;
  GrpcCall& operator=(const GrpcCall&) = delete;

  // The stub's channel moves bytes while this or another call of it is waited for.
  void start(wire::RendezvousService::Stub& stub, const wire::Request& request);
  void start(wire::RendezvousService::Stub& stub, const wire::Request& request, Deadline deadline);
  // A call that the server acknowledges (ServerCall) and leaves open. One that was started before is ended.
  void start_open(wire::RendezvousService::Stub& stub, const wire::Request& request);
  // False if it has not ended at `when`.
  bool wait(Deadline when);
  // False if it has neither been acknowledged nor ended at `when`.
  bool wait_until_open(Deadline when);
  // Looks without blocking. Once true it stays so.
  bool has_ended();
  // Acknowledged, and not ended.
  bool is_open() { return is_acknowledged_ && !has_ended(); }
  // Cancels it if it has not ended, and waits for gRPC, a few seconds at most. Idempotent.
  void end();

  // Once it has ended.
  const grpc::Status& status() const { return state_->status; }
  wire::Answer& answer() { return state_->answer; }

 private:
  struct State {
    grpc::CompletionQueue queue;
    grpc::ClientContext context;
    wire::Answer answer;
    grpc::Status status;
    std::unique_ptr<grpc::ClientAsyncResponseReader<wire::Answer>> reader;
  };
  // Whether an event has come.
  bool next(gpr_timespec when);
  static bool drain(State& state);

  std::unique_ptr<State> state_;  // null: not started, or ended by end()
  std::atomic<bool> has_ended_ = false;
  bool is_acknowledged_ = false;
};

}  // namespace ccom
