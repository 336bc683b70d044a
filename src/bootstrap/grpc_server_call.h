// SPDX-License-Identifier: Apache-2.0
//
// A request that has come by gRPC.
#pragma once

#include <grpcpp/server_context.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>

#include <functional>
#include <utility>

#include "bootstrap/pending_call.h"

namespace ccom {

// Deletes itself when gRPC has finished with it.
class ServerCall final : public grpc::ServerUnaryReactor, public PendingCall {
 public:
  ServerCall(grpc::ByteBuffer& answer, std::function<void(PendingCall*)> on_cancel)
      : answer_(answer), on_cancel_(std::move(on_cancel)) {}
  // By the call's initial metadata.
  void acknowledge() override { StartSendInitialMetadata(); }
  void OnCancel() override { on_cancel_(this); }
  void OnDone() override { delete this; }

 private:
  void finish(const AnswerText& answer, Refusal refusal) noexcept override;

  grpc::ByteBuffer& answer_;
  const std::function<void(PendingCall*)> on_cancel_;
};

}  // namespace ccom
