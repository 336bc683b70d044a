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

grpc::ByteBuffer encode(const Status& status);
grpc::ByteBuffer encode(const std::vector<std::string>& parts);
// The error that it carries, if any.
Status decode(const wire::Answer& answer);

}  // namespace ccom
