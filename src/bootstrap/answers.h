// SPDX-License-Identifier: Apache-2.0
//
// Who asks the server of a rendezvous, and what it answers (rendezvous.proto): an error, or the parts of all ranks.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "bootstrap/gathering.h"
#include "bootstrap/pending_call.h"
#include "bootstrap/unique_id.h"

namespace ccom {

namespace wire {
class Answer;
class Member;
class Request;
class Server;
}  // namespace wire

// The process that runs the server.
struct ServerProcess {
  std::string who{};
  std::string build{};
  std::vector<int> ranks{};  // those that have joined from it
};
// "process 412 on n7": this one.
std::string this_process();

ServerProcess process_of(const wire::Server& server);

// Who sends it, and for whom: others of a relay, or the sender itself.
Caller caller_of(const wire::Request& request);
Caller caller_of(const wire::Member& member);
std::vector<Caller> callers_of(const wire::Request& request);

// What a request says, for all of them; the first error.
bool are_for_next_rendezvous(const Gathering& gathering, const std::vector<Caller>& callers);  // one of them is
Status join_all(Gathering& gathering, const std::vector<Caller>& callers, ServerProcess& server);
Status contribute_all(Gathering& gathering, wire::Request& request);
void lose_all(Gathering& gathering, const std::vector<Caller>& callers);

AnswerText encode(wire::Answer& answer, const ServerProcess& server);
AnswerText encode(const Status& status, const ServerProcess& server);
AnswerText encode(const std::vector<std::string>& parts, const ServerProcess& server);
// To a relay: which other one to speak to.
AnswerText encode_way(const std::string& relay, const ServerProcess& server);
// An answer without parts.
std::string serialized(const Status& status);
// The error that it carries, if any.
Status decode(const wire::Answer& answer);

// What a rank says of a server, by the id, and what it knows of its process: that it has ended, or cannot be reached.
Status server_lost(const UniqueId& id, Rank rank, const ServerProcess& server, const std::string& reason);
Status server_unreachable(const UniqueId& id, Rank rank, const ServerProcess& server, const std::string& reason);
Status interrupted_at_server(const UniqueId& id, Rank rank);

}  // namespace ccom
