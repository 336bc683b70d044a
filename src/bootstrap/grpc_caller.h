// SPDX-License-Identifier: Apache-2.0
//
// Who asks the server of a rendezvous: a rank, or a relay for the ranks of its host. Requests are repeated while the
// connection may come back, and what fails becomes an error that says whom it is about.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/time.h"
#include "base/types.h"
#include "base/wait_limit.h"
#include "bootstrap/answers.h"
#include "bootstrap/grpc_call.h"
#include "bootstrap/grpc_use.h"
#include "bootstrap/rendezvous.grpc.pb.h"
#include "bootstrap/unique_id.h"

namespace ccom {

// Of a rank of this process, which it tells from others that claim to be the same.
wire::Request identity_of(int nranks, Rank rank);
// Of an all-gather: what a rank says, and what comes back.
Status check_part(std::string_view phase, Rank rank, const std::string& part);
wire::Contribution contribution_of(uint64_t round, std::string_view phase, std::string part, Deadline deadline);
Result<std::vector<std::string>> parts_of(wire::Answer& answer, const wire::Request& request);

class StartWait;

// Used by one thread; was_interrupted() by any. Signals are blocked while gRPC's functions run, because any of them may
// start threads, which would take the application's signals. Not for longer: a signal of the caller's may end the wait.
class GrpcCaller {
 public:
  // identity: of requests; each is a copy with its step added.
  GrpcCaller(const UniqueId& id, wire::Request identity, Interrupted interrupted)
      : id_(id), interrupted_(std::move(interrupted)), request_(std::move(identity)) {}

  Status open();
  const UniqueId& id() const { return id_; }
  const wire::Request& identity() const { return request_; }
  wire::RendezvousService::Stub& stub() const { return *stub_; }
  const ServerProcess& server() const { return server_; }  // as it has said
  // Retries until there is an answer. Server-side failures are in the answer; an error means that there is none.
  // presence: opened before each attempt, where it is not; for requests to join.
  Result<wire::Answer> exchange(const wire::Request& request, Deadline deadline, GrpcCall* presence = nullptr);
  // That a call has ended without an answer.
  Status explain(const grpc::Status& status) const;
  bool is_interrupted();
  bool was_interrupted() const { return was_interrupted_; }
  Status interruption() const { return interrupted_at_server(id_, request_.rank()); }

 private:
  grpc::Status attempt(const wire::Request& request, Deadline deadline, wire::Answer& answer);
  grpc::Status open_presence(GrpcCall& presence, Deadline deadline, StartWait& wait);
  void warn(const StartWait& wait, const std::string& reason) const;

  const UniqueId id_;
  const Interrupted interrupted_;
  std::atomic<bool> was_interrupted_ = false;
  const GrpcUse grpc_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<wire::RendezvousService::Stub> stub_;
  const wire::Request request_;
  ServerProcess server_;
  bool has_answered_ = false;
};

}  // namespace ccom
