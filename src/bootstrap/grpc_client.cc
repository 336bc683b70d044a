// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/grpc_client.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <optional>
#include <thread>

#include "base/log.h"
#include "base/thread.h"
#include "bootstrap/gathering.h"
#include "bootstrap/grpc_answer.h"
#include "bootstrap/grpc_call.h"
#include "bootstrap/grpc_channel.h"
#include "bootstrap/grpc_use.h"
#include "bootstrap/rendezvous.grpc.pb.h"
#include "bootstrap/rendezvous_servers.h"
#include "bootstrap/start_resources.h"
#include "bootstrap/this_build.h"

namespace ccom {
namespace {

using namespace std::chrono_literals;

constexpr auto kLeaveTimeout = 2s;
constexpr auto kInterruptInterval = 50ms;
// How long to retry after the peer has failed authentication: an older job may just be shutting down there.
constexpr auto kAuthenticationTimeout = 2s;
// The same after the server has disappeared: a lost connection is soon replaced.
constexpr auto kLostTimeout = 500ms;
// Of a second rank 0, which has waited for the port before.
constexpr auto kRefusalTimeout = 2s;

// One rank's client. Used by one thread; has_failed() by any.
//
// Signals are blocked while gRPC's functions run, because any of them may start threads, which would take the
// application's signals. Not for longer: a signal of the caller's may end the wait.
class Client final : public Rendezvous {
 public:
  Client(const UniqueId& id, int nranks, Rank rank, Interrupted interrupted)
      : id_(id), interrupted_(std::move(interrupted)) {
    request_.set_rank(rank);
    request_.set_nranks(nranks);
    request_.set_token(random_u64());
    request_.set_who(this_process());
    request_.set_build(this_build());
    signals_blocked_.reset();
  }
  ~Client() override;
  const UniqueId& id() const { return id_; }
  Status open();
  Status join(Deadline deadline);
  Status probe(Deadline deadline);
  Result<std::vector<std::string>> all_gather(std::string_view phase, std::string mine, Deadline deadline) override;
  bool has_failed() override { return presence_.has_ended() || is_interrupted(); }

 private:
  void leave();
  Status lost(const std::string& reason) const;
  std::vector<int> servers_ranks() const;
  Result<wire::Answer> exchange(const wire::Request& request, Deadline deadline);
  grpc::Status attempt(const wire::Request& request, Deadline deadline, wire::Answer& answer);
  bool is_interrupted();
  Status interruption() const;
  Status explain(const grpc::Status& status) const;

  std::optional<SignalsBlocked> signals_blocked_{std::in_place};  // while members are made, and while they go
  const UniqueId id_;
  const Interrupted interrupted_;
  std::atomic<bool> was_interrupted_ = false;
  const GrpcUse grpc_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<wire::RendezvousService::Stub> stub_;
  wire::Request request_;  // identifies this rank; each request is a copy with its step added
  wire::Server server_;    // as it has said
  // Left open while ranks meet. The server sees it break when the rank's process ends, and the rank sees it end when
  // the rendezvous has failed, also while it asks the server for nothing.
  GrpcCall presence_;
  bool has_answered_ = false;
  bool has_joined_ = false;
  uint64_t round_ = 0;
};

Status Client::open() {
  CCOM_TRY_ASSIGN(const TlsIdentity identity, make_tls_identity(id_.secret));
  const SignalsBlocked blocked;
  channel_ = open_channel(id_, identity);
  stub_ = wire::RendezvousService::NewStub(channel_);
  return Status::ok();
}

std::vector<int> Client::servers_ranks() const {
  if (server_.ranks_size() == 0 && id_.is_rank0s()) return {0};
  std::vector<int> ranks(server_.ranks().begin(), server_.ranks().end());
  std::ranges::sort(ranks);
  return ranks;
}

Status Client::lost(const std::string& reason) const {
  const std::vector<int> ranks = servers_ranks();
  const std::string who = ranks.empty() ? "the process that made the unique id" : name_ranks(ranks);
  return error(ErrorKey::ServerLost, "rank %d: %s (%s) has ended: lost the rendezvous server %s, which ran in it: %s",
               request_.rank(), who.c_str(), server_.who().c_str(), id_.endpoint().c_str(), reason.c_str())
      .with_peers(ranks)
      .with_cure("see that process's own error");
}

Status Client::explain(const grpc::Status& status) const {
  const int rank = request_.rank();
  const std::string endpoint = id_.endpoint();
  const std::string reason = reason_of(status);
  if (is_authentication_failure(status)) {
    return error(ErrorKey::WrongSecret,
                 "rank %d: authentication failed: the process listening at %s does not hold this job's secret: %s",
                 rank, endpoint.c_str(), reason.c_str())
        .with_cure("check that all ranks use the same unique id or secret, and that no other program uses this port");
  }
  if (has_answered_ && is_retryable(status)) {
    return lost(reason);
  }
  if (!is_retryable(status) && status.error_code() != grpc::StatusCode::DEADLINE_EXCEEDED) {
    return error(Code::TransportError, "rank %d: the rendezvous server %s refused the request: %s", rank,
                 endpoint.c_str(), reason.c_str());
  }
  const std::string whose = id_.is_rank0s() ? " of rank 0" : "";
  return error(ErrorKey::ServerUnreachable, "rank %d cannot reach the rendezvous server %s%s: %s", rank,
               endpoint.c_str(), whose.c_str(), reason.c_str())
      .with_peers(servers_ranks())
      .with_cure("check that the process that created the unique id runs and that no firewall blocks the connection");
}

bool Client::is_interrupted() {
  if (!was_interrupted_ && interrupted_ && interrupted_()) was_interrupted_ = true;
  return was_interrupted_;
}

Status Client::interruption() const {
  return error(ErrorKey::WaitInterrupted, "rank %d was interrupted at the rendezvous server %s", request_.rank(),
               id_.endpoint().c_str());
}

// As the stub's blocking call, until the caller does not want to wait any longer.
grpc::Status Client::attempt(const wire::Request& request, Deadline deadline, wire::Answer& answer) {
  GrpcCall call;
  call.start(*stub_, request, deadline);
  const Deadline limit(deadline.when() + kLostTimeout);
  while (!call.wait(Deadline::after(kInterruptInterval))) {
    if (is_interrupted()) return {grpc::StatusCode::CANCELLED, ""};
    if (limit.passed()) return {grpc::StatusCode::DEADLINE_EXCEEDED, ""};
  }
  answer.Swap(&call.answer());
  return call.status();
}

// Retries until there is an answer. Server-side failures are in the answer; an error means that there is none.
Result<wire::Answer> Client::exchange(const wire::Request& request, Deadline deadline) {
  auto pause = 10ms;
  Deadline limit = deadline;
  grpc::Status why;  // an attempt cut short by the deadline gives a less useful reason than the one before
  while (true) {
    wire::Answer answer;
    const grpc::Status status = attempt(request, deadline, answer);
    if (status.ok()) {
      has_answered_ = true;
      if (answer.has_server()) server_ = answer.server();
      return answer;
    }
    if (is_interrupted()) return interruption();
    if (why.ok() || status.error_code() != grpc::StatusCode::DEADLINE_EXCEEDED) why = status;
    if (is_authentication_failure(status)) limit = limit.earlier(Deadline::after(kAuthenticationTimeout));
    if (has_answered_) limit = limit.earlier(Deadline::after(kLostTimeout));
    if (!is_retryable(status) || limit.passed()) return explain(why);
    // Not a plain sleep: gRPC continues a connection attempt only while a thread waits on the channel (else every 5 s).
    const SignalsBlocked blocked;
    channel_->WaitForConnected(grpc_deadline(limit.earlier(Deadline::after(pause))));
    pause = std::min(pause * 2, 100ms);
  }
}

Status Client::join(Deadline deadline) {
  wire::Request request = request_;
  request.mutable_join();
  CCOM_TRY_ASSIGN(const wire::Answer answer, exchange(request, deadline));
  CCOM_TRY(decode(answer));
  has_joined_ = true;
  // A server that does not compare builds: this rank leaves, which ends the rendezvous for all.
  if (server_.build() != request_.build()) {
    return other_build(caller_of(request_), server_.who(), server_.build());
  }
  wire::Request presence = request_;
  presence.mutable_presence();
  presence_.start(*stub_, presence);
  return Status::ok();
}

Status Client::probe(Deadline deadline) {
  CCOM_TRY_ASSIGN(const wire::Answer answer, exchange(request_, deadline));
  return decode(answer);
}

Result<std::vector<std::string>> Client::all_gather(std::string_view phase, std::string mine, Deadline deadline) {
  if (mine.size() > kMaxPartBytes) {
    return error(Code::InvalidArgument, "exchange '%.*s': rank %d contributes %zu bytes, the maximum is %zu",
                 static_cast<int>(phase.size()), phase.data(), request_.rank(), mine.size(), kMaxPartBytes);
  }
  if (was_interrupted_) return interruption();
  try {
    const int64_t left = deadline.left_ms();
    wire::Request request = request_;
    wire::Contribution& step = *request.mutable_contribution();
    step.set_round(round_);
    step.set_phase(std::string(phase));
    step.set_part(std::move(mine));
    step.set_timeout_ms(left - std::min<int64_t>(left / 4, 500));  // leaves time for the answer to travel
    CCOM_TRY_ASSIGN(wire::Answer answer, exchange(request, deadline));
    CCOM_TRY(decode(answer));
    if (answer.parts_size() != request_.nranks()) {
      return error(Code::InternalError, "exchange '%s' returned %d parts for %d ranks", step.phase().c_str(),
                   answer.parts_size(), request_.nranks());
    }
    ++round_;
    return std::vector<std::string>(std::make_move_iterator(answer.mutable_parts()->begin()),
                                    std::make_move_iterator(answer.mutable_parts()->end()));
  } catch (const std::exception& failure) {
    return error(Code::OutOfMemory, "exchange '%.*s': %s", static_cast<int>(phase.size()), phase.data(),
                 failure.what());
  }
}

Client::~Client() {
  signals_blocked_.emplace();
  try {
    if (has_joined_) leave();
  } catch (const std::bad_alloc&) {  // the lost connection tells the server
  }
  presence_.end();
}

void Client::leave() {
  wire::Request request = request_;
  request.mutable_leave();
  const Deadline deadline = Deadline::after(kLeaveTimeout);
  GrpcCall call;
  call.start(*stub_, request, deadline);
  if (const grpc::Status status = call.wait(deadline) ? call.status() : grpc::Status::CANCELLED; !status.ok()) {
    log(LogLevel::Debug, "rank %d leaves the rendezvous server %s: %s", request.rank(), id_.endpoint().c_str(),
        reason_of(status).c_str());
  }
}

}  // namespace

Result<std::unique_ptr<Rendezvous>> connect_rendezvous(const UniqueId& id, int nranks, Rank rank, Deadline deadline,
                                                       Interrupted interrupted) {
  if (nranks < 1 || nranks > kMaxRanks || rank < 0 || rank >= nranks) {
    return error(Code::InvalidArgument, "invalid rank %d of %d", rank, nranks);
  }
  try {
    CCOM_TRY(check_start_resources());
    if (id.rank0_serves && rank == 0) {
      const Status hosted = host_rendezvous(id, deadline);
      if (hosted.sys_errno() == EADDRINUSE) {
        const Status refusal = join_to_be_refused(id, nranks, rank, deadline.earlier(Deadline::after(kRefusalTimeout)));
        if (!refusal.is_ok() && refusal.key() == ErrorKey::RanksDisagree) return refusal;
      }
      CCOM_TRY(Status(hosted));
    }
    auto client = std::make_unique<Client>(id, nranks, rank, std::move(interrupted));
    CCOM_TRY(client->open());
    CCOM_TRY(client->join(deadline));
    return std::unique_ptr<Rendezvous>(std::move(client));
  } catch (const std::exception& failure) {
    return error(Code::OutOfMemory, "rank %d: connect to the rendezvous server: %s", rank, failure.what());
  }
}

Status join_to_be_refused(const UniqueId& id, int nranks, Rank rank, Deadline deadline) {
  try {
    Client client(id, nranks, rank, {});
    CCOM_TRY(client.open());
    Status answer = client.probe(deadline);
    while (answer.is_ok() && !deadline.passed()) {  // a rank 0 whose server runs joins soon
      std::this_thread::sleep_for(10ms);
      answer = client.probe(deadline);
    }
    const bool is_refused = !answer.is_ok() && answer.key() == ErrorKey::RanksDisagree;
    return is_refused ? client.join(deadline) : answer;
  } catch (const std::exception& failure) {
    return error(Code::OutOfMemory, "ask the rendezvous server %s: %s", id.endpoint().c_str(), failure.what());
  }
}

Status RendezvousProbe::ask(const UniqueId& id, Deadline deadline) {
  try {
    auto* client = static_cast<Client*>(client_.get());
    if (client == nullptr || client->id().communicator != id.communicator) {
      client_ = nullptr;
      auto made = std::make_unique<Client>(id, nranks_, rank_, Interrupted{});
      CCOM_TRY(made->open());
      client = made.get();
      client_ = std::move(made);
    }
    return client->probe(deadline);
  } catch (const std::exception& failure) {
    return error(Code::OutOfMemory, "probe the rendezvous server %s: %s", id.endpoint().c_str(), failure.what());
  }
}

}  // namespace ccom
