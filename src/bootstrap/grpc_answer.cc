// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/grpc_answer.h"

#include <unistd.h>

#include "bootstrap/rendezvous.grpc.pb.h"

namespace ccom {
namespace {

grpc::ByteBuffer encode(wire::Answer& answer, const ServerProcess& server) {
  answer.mutable_server()->set_who(server.who);
  answer.mutable_server()->set_build(server.build);
  for (const int rank : server.ranks) answer.mutable_server()->add_ranks(rank);
  grpc::ByteBuffer bytes;
  bool owns_buffer = false;
  CCOM_ASSERT(grpc::SerializationTraits<wire::Answer>::Serialize(answer, &bytes, &owns_buffer).ok());
  return bytes;
}

}  // namespace

grpc::ByteBuffer encode(const Status& status, const ServerProcess& server) {
  wire::Answer answer;
  if (!status.is_ok()) {
    wire::Failure& failure = *answer.mutable_failure();
    failure.set_code(static_cast<int>(status.code()));
    failure.set_key(static_cast<uint32_t>(status.key()));
    failure.set_text(status.message());
    for (const int rank : status.peers()) failure.add_ranks(rank);
    failure.set_cure(status.cure());
  }
  return encode(answer, server);
}

grpc::ByteBuffer encode(const std::vector<std::string>& parts, const ServerProcess& server) {
  wire::Answer answer;
  for (const std::string& part : parts) answer.add_parts(part);
  return encode(answer, server);
}

Caller caller_of(const wire::Request& request) {
  return {.rank = request.rank(),
          .nranks = request.nranks(),
          .token = request.token(),
          .who = request.who(),
          .build = request.build()};
}

std::string this_process() {
  char host[256] = "this host";
  (void)::gethostname(host, sizeof host - 1);
  return "process " + std::to_string(::getpid()) + " on " + host;
}

Status decode(const wire::Answer& answer) {
  if (!answer.has_failure()) return Status::ok();
  const wire::Failure& failure = answer.failure();
  return Status(key_of(failure.key(), static_cast<Code>(failure.code())), failure.text())
      .with_peers({failure.ranks().begin(), failure.ranks().end()})
      .with_cure(failure.cure());
}

}  // namespace ccom
