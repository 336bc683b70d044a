// SPDX-License-Identifier: Apache-2.0
//
// A call that a rank leaves open while ranks meet. The server sees it break when the rank's process ends, and the rank
// sees it end when the rendezvous has failed, also while it asks the server for nothing.
#pragma once

#include <grpcpp/client_context.h>
#include <grpcpp/completion_queue.h>
#include <grpcpp/support/async_unary_call.h>

#include <atomic>
#include <memory>

#include "bootstrap/rendezvous.grpc.pb.h"

namespace ccom {

// Used by one thread; has_ended() by any.
class GrpcPresence {
 public:
  GrpcPresence() = default;
  ~GrpcPresence() { end(); }
  GrpcPresence(const GrpcPresence&) = delete;
  GrpcPresence& operator=(const GrpcPresence&) = delete;

  // Begins it, once. The stub's channel moves bytes while this or another call of it is waited for.
  void show(wire::RendezvousService::Stub& stub, const wire::Request& request);
  // Looks without blocking. Once true it stays so.
  bool has_ended();
  // Waits for gRPC. Idempotent.
  void end();

 private:
  grpc::CompletionQueue queue_;
  grpc::ClientContext context_;
  wire::Answer answer_;
  grpc::Status status_;
  std::unique_ptr<grpc::ClientAsyncResponseReader<wire::Answer>> reader_;  // null: not shown, or ended
  std::atomic<bool> has_ended_ = false;
};

// As gRPC asks for before a queue is destroyed: waits for what has been started.
void drain(grpc::CompletionQueue& queue);

}  // namespace ccom
