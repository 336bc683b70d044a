// SPDX-License-Identifier: Apache-2.0
//
// The requests of the rendezvous server, from their arrival until they are answered.
#pragma once

#include <grpcpp/server_context.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>

#include <functional>
#include <utility>

namespace ccom {

// One pending request. Deletes itself when gRPC has finished with it. FinishedCalls answer it.
class ServerCall final : public grpc::ServerUnaryReactor {
 public:
  ServerCall(grpc::ByteBuffer& answer, std::function<void(ServerCall*)> on_cancel)
      : answer_(answer), on_cancel_(std::move(on_cancel)) {}
  // Tells the client that the request is there, by the call's initial metadata. Before it is finished.
  void acknowledge() { StartSendInitialMetadata(); }
  void OnCancel() override { on_cancel_(this); }
  void OnDone() override { delete this; }

 private:
  friend class FinishedCalls;
  grpc::ByteBuffer& answer_;
  const std::function<void(ServerCall*)> on_cancel_;
  const grpc::Status* status_ = &grpc::Status::OK;
  ServerCall* next_ = nullptr;
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

  void add(ServerCall* call, const grpc::ByteBuffer& answer);  // shares the bytes
  void add(ServerCall* call, const grpc::Status& status);      // which outlives the call

 private:
  ServerCall* first_ = nullptr;
};

}  // namespace ccom
