// SPDX-License-Identifier: Apache-2.0
//
// Who asks the server of a rendezvous, and what it answers (rendezvous.proto): an error, or the parts of all ranks.
#pragma once

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/status.h>

#include <string>
#include <vector>

#include "base/status.h"
#include "bootstrap/gathering.h"

namespace ccom {

namespace wire {
class Answer;
class Member;
class Request;
}  // namespace wire

// These two make the client retry.
inline const grpc::Status kNotYet(grpc::StatusCode::UNAVAILABLE,
                                  "the previous rendezvous at this address has not ended yet");
inline const grpc::Status kAbsent(grpc::StatusCode::UNAVAILABLE,
                                  "the rank's connection to the rendezvous server has broken");
inline const grpc::Status kMalformed(grpc::StatusCode::INVALID_ARGUMENT,
                                     "malformed request, or another version of ccom");
// Short enough to be sent without memory, as the next one.
inline const grpc::Status kNoMemory(grpc::StatusCode::RESOURCE_EXHAUSTED, "out of memory");

// The process that runs the server.
struct ServerProcess {
  std::string who{};
  std::string build{};
  std::vector<int> ranks{};  // those that have joined from it
};
// "process 412 on n7": this one.
std::string this_process();

// Who sends it, and for whom: others of a relay, or the sender itself.
Caller caller_of(const wire::Request& request);
Caller caller_of(const wire::Member& member);
std::vector<Caller> callers_of(const wire::Request& request);

// What a request says, for all of them; the first error.
bool are_for_next_rendezvous(const Gathering& gathering, const std::vector<Caller>& callers);  // one of them is
Status join_all(Gathering& gathering, const std::vector<Caller>& callers, ServerProcess& server);
Status contribute_all(Gathering& gathering, wire::Request& request);
void lose_all(Gathering& gathering, const std::vector<Caller>& callers);

grpc::ByteBuffer encode(wire::Answer& answer, const ServerProcess& server);
grpc::ByteBuffer encode(const Status& status, const ServerProcess& server);
grpc::ByteBuffer encode(const std::vector<std::string>& parts, const ServerProcess& server);
// To a relay: which other one to speak to.
grpc::ByteBuffer encode_way(const std::string& relay, const ServerProcess& server);
// An answer without parts.
std::string serialized(const Status& status);
// The error that it carries, if any.
Status decode(const wire::Answer& answer);

}  // namespace ccom
