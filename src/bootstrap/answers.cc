// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/answers.h"

#include <unistd.h>

#include <algorithm>

#include "bootstrap/rendezvous.pb.h"
#include "control/error_codec.h"

namespace ccom {
namespace {

wire::Answer answer_of(const Status& status) {
  wire::Answer answer;
  if (!status.is_ok()) put_error(status, *answer.mutable_failure());
  return answer;
}

}  // namespace

AnswerText encode(wire::Answer& answer, const ServerProcess& server) {
  answer.mutable_server()->set_who(server.who);
  answer.mutable_server()->set_build(server.build);
  answer.mutable_server()->clear_ranks();
  for (const int rank : server.ranks) answer.mutable_server()->add_ranks(rank);
  return std::make_shared<const std::string>(answer.SerializeAsString());
}

AnswerText encode(const Status& status, const ServerProcess& server) {
  wire::Answer answer = answer_of(status);
  return encode(answer, server);
}

std::string serialized(const Status& status) { return answer_of(status).SerializeAsString(); }

AnswerText encode(const std::vector<std::string>& parts, const ServerProcess& server) {
  wire::Answer answer;
  for (const std::string& part : parts) answer.add_parts(part);
  return encode(answer, server);
}

AnswerText encode_way(const std::string& relay, const ServerProcess& server) {
  wire::Answer answer;
  answer.set_speak_to(relay);
  return encode(answer, server);
}

ServerProcess process_of(const wire::Server& server) {
  return {.who = server.who(), .build = server.build(), .ranks = {server.ranks().begin(), server.ranks().end()}};
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
  std::optional<Status> failure = error_in(answer.failure());
  return failure
             ? *std::move(failure)
             : error(Code::InternalError, "the rendezvous server's error is none: %s", answer.failure().text().c_str());
}

namespace {

std::vector<int> ranks_of_server(const UniqueId& id, const ServerProcess& server) {
  if (server.ranks.empty() && id.is_rank0s()) return {0};
  std::vector<int> ranks = server.ranks;
  std::ranges::sort(ranks);
  return ranks;
}

}  // namespace

Status server_lost(const UniqueId& id, Rank rank, const ServerProcess& server, const std::string& reason) {
  const std::vector<int> ranks = ranks_of_server(id, server);
  const std::string who = ranks.empty() ? "the process that made the unique id" : name_ranks(ranks);
  return error(ErrorKey::ServerLost, "rank %d: %s (%s) has ended: lost the rendezvous server %s, which ran in it: %s",
               rank, who.c_str(), server.who.c_str(), id.endpoint().c_str(), reason.c_str())
      .with_peers(ranks)
      .with_cure("see that process's own error");
}

Status server_unreachable(const UniqueId& id, Rank rank, const ServerProcess& server, const std::string& reason) {
  const std::string whose = id.is_rank0s() ? " of rank 0" : "";
  return error(ErrorKey::ServerUnreachable, "rank %d cannot reach the rendezvous server %s%s: %s", rank,
               id.endpoint().c_str(), whose.c_str(), reason.c_str())
      .with_peers(ranks_of_server(id, server))
      .with_cure(
          "check that the process that created the unique id runs, that no firewall blocks the connection, and that "
          "initTimeoutMs (CCOM_INIT_TIMEOUT_MS) is long enough");
}

Status interrupted_at_server(const UniqueId& id, Rank rank) {
  return error(ErrorKey::WaitInterrupted, "rank %d was interrupted at the rendezvous server %s", rank,
               id.endpoint().c_str());
}

}  // namespace ccom
