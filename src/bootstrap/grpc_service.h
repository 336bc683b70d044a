// SPDX-License-Identifier: Apache-2.0
//
// The service of rendezvous.proto, for the server and for relays, which read requests themselves.
#pragma once

#include <functional>
#include <utility>

#include "bootstrap/grpc_server_call.h"
#include "bootstrap/rendezvous.grpc.pb.h"

namespace ccom {

class RendezvousCalls final
    : public wire::RendezvousService::WithRawCallbackMethod_Exchange<wire::RendezvousService::Service> {
 public:
  // Makes a ServerCall of each request, whose answer is filled in when it finishes. Called by gRPC's threads.
  using Accept = std::function<ServerCall*(const grpc::ByteBuffer& request, grpc::ByteBuffer& answer)>;
  explicit RendezvousCalls(Accept accept) : accept_(std::move(accept)) {}

 private:
  grpc::ServerUnaryReactor* Exchange(grpc::CallbackServerContext*, const grpc::ByteBuffer* request,
                                     grpc::ByteBuffer* answer) override {
    return accept_(*request, *answer);
  }

  const Accept accept_;
};

}  // namespace ccom
