// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/grpc_server_call.h"

#include <new>

namespace ccom {

void FinishedCalls::add(ServerCall* call, const grpc::ByteBuffer& answer) {
  if (!call->is_finished_) call->answer_ = answer;
  add(call, grpc::Status::OK);
}

void FinishedCalls::add(ServerCall* call, const grpc::Status& status) {
  if (std::exchange(call->is_finished_, true)) return;
  call->status_ = &status;
  call->next_ = std::exchange(first_, call);
}

FinishedCalls::~FinishedCalls() {
  while (first_ != nullptr) {
    ServerCall* const call = first_;
    first_ = call->next_;
    try {
      call->Finish(*call->status_);
    } catch (const std::bad_alloc&) {  // gRPC has forgotten it, and its server will not end
    }
  }
}

}  // namespace ccom
