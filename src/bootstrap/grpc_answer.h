// SPDX-License-Identifier: Apache-2.0
//
// What the server of a rendezvous answers (rendezvous.proto): an error, or the parts of all ranks.
#pragma once

#include <grpcpp/support/byte_buffer.h>

#include <string>
#include <vector>

#include "base/status.h"

namespace ccom {

namespace wire {
class Answer;
}

// The process that runs the server.
struct ServerProcess {
  std::string who;
  std::vector<int> ranks{};  // those that have joined from it
};
// "process 412 on n7": this one.
std::string this_process();

grpc::ByteBuffer encode(const Status& status, const ServerProcess& server);
grpc::ByteBuffer encode(const std::vector<std::string>& parts, const ServerProcess& server);
// The error that it carries, if any.
Status decode(const wire::Answer& answer);

}  // namespace ccom
