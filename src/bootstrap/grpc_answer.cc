// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/grpc_answer.h"

#include <unistd.h>

#include <algorithm>

#include "bootstrap/rendezvous.grpc.pb.h"

namespace ccom {
namespace {

wire::Answer answer_of(const Status& status) {
  wire::Answer answer;
  if (status.is_ok()) return answer;
  wire::Failure& failure = *answer.mutable_failure();
  failure.set_code(static_cast<int>(status.code()));
  failure.set_key(static_cast<uint32_t>(status.key()));
  failure.set_text(status.message());
  for (const int rank : status.peers()) failure.add_ranks(rank);
  failure.set_cure(status.cure());
  return answer;
}

}  // namespace

grpc::ByteBuffer encode(wire::Answer& answer, const ServerProcess& server) {
  answer.mutable_server()->set_who(server.who);
  answer.mutable_server()->set_build(server.build);
  answer.mutable_server()->clear_ranks();
  for (const int rank : server.ranks) answer.mutable_server()->add_ranks(rank);
  grpc::ByteBuffer bytes;
  bool owns_buffer = false;
  CCOM_ASSERT(grpc::SerializationTraits<wire::Answer>::Serialize(answer, &bytes, &owns_buffer).ok());
  return bytes;
}

grpc::ByteBuffer encode(const Status& status, const ServerProcess& server) {
  wire::Answer answer = answer_of(status);
  return encode(answer, server);
}

std::string serialized(const Status& status) { return answer_of(status).SerializeAsString(); }

grpc::ByteBuffer encode(const std::vector<std::string>& parts, const ServerProcess& server) {
  wire::Answer answer;
  for (const std::string& part : parts) answer.add_parts(part);
  return encode(answer, server);
}

grpc::ByteBuffer encode_way(const std::string& relay, const ServerProcess& server) {
  wire::Answer answer;
  answer.set_speak_to(relay);
  return encode(answer, server);
}

Caller caller_of(const wire::Request& request) {
  return {.rank = request.rank(),
          .nranks = request.nranks(),
          .token = request.token(),
          .who = request.who(),
          .build = request.build()};
}

Caller caller_of(const wire::Member& member) {
  return {.rank = member.rank(),
          .nranks = member.nranks(),
          .token = member.token(),
          .who = member.who(),
          .build = member.build()};
}

std::vector<Caller> callers_of(const wire::Request& request) {
  if (request.also().empty()) return {caller_of(request)};
  std::vector<Caller> callers;
  for (const wire::Member& member : request.also()) callers.push_back(caller_of(member));
  return callers;
}

bool are_for_next_rendezvous(const Gathering& gathering, const std::vector<Caller>& callers) {
  return std::ranges::any_of(callers, [&](const Caller& each) { return gathering.is_for_next_rendezvous(each); });
}

Status join_all(Gathering& gathering, const std::vector<Caller>& callers, ServerProcess& server) {
  for (const Caller& caller : callers) {
    const bool is_new = !gathering.is_member(caller);
    CCOM_TRY(gathering.join(caller));
    if (is_new && caller.who == server.who) server.ranks.push_back(caller.rank);
  }
  return {};
}

Status contribute_all(Gathering& gathering, wire::Request& request) {
  wire::Contribution& step = *request.mutable_contribution();
  if (request.also().empty())
    return gathering.contribute(caller_of(request), step.round(), step.phase(), std::move(*step.mutable_part()));
  for (wire::Member& member : *request.mutable_also())
    CCOM_TRY(gathering.contribute(caller_of(member), step.round(), step.phase(), std::move(*member.mutable_part())));
  return {};
}

void lose_all(Gathering& gathering, const std::vector<Caller>& callers) {
  for (const Caller& each : callers)
    if (gathering.is_member(each)) gathering.lose_rank(each.rank);
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
