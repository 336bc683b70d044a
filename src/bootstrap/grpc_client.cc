// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/grpc_client.h"

#include <algorithm>
#include <cerrno>
#include <optional>
#include <thread>

#include "base/log.h"
#include "base/tcp_socket.h"
#include "base/thread.h"
#include "bootstrap/answers.h"
#include "bootstrap/gathering.h"
#include "bootstrap/grpc_caller.h"
#include "bootstrap/grpc_channel.h"
#include "bootstrap/host_relay.h"
#include "bootstrap/rendezvous_servers.h"
#include "bootstrap/start_resources.h"

namespace ccom {
namespace {

using namespace std::chrono_literals;

constexpr auto kLeaveTimeout = 2s;
// Of a second rank 0, which has waited for the port before.
constexpr auto kRefusalTimeout = 2s;
// For the answer to a plain probe: as long as a crowded machine takes.
constexpr auto kPlainTime = 2s;

// One rank's client. Used by one thread; has_failed() by any.
class Client final : public Rendezvous {
 public:
  Client(const UniqueId& id, int nranks, Rank rank, Interrupted interrupted)
      : caller_(id, identity_of(nranks, rank), std::move(interrupted)) {
    signals_blocked_.reset();
  }
  ~Client() override;
  const UniqueId& id() const { return caller_.id(); }
  Status open() { return caller_.open(); }
  Status join(Deadline deadline);
  Status probe(Deadline deadline);
  Result<std::vector<std::string>> all_gather(std::string_view phase, std::string mine, Deadline deadline) override;
  bool has_failed() override { return presence_.has_ended() || caller_.is_interrupted(); }

 private:
  void leave();

  std::optional<SignalsBlocked> signals_blocked_{std::in_place};  // while members are made, and while they go
  GrpcCaller caller_;
  // Open from before this rank joins until it leaves. The server sees it break when the rank's process ends, and the
  // rank sees it end when the rendezvous has failed, also while it asks the server for nothing.
  GrpcCall presence_;
  bool has_joined_ = false;
  uint64_t round_ = 0;
};

Status Client::join(Deadline deadline) {
  wire::Request request = caller_.identity();
  request.mutable_join();
  CCOM_TRY_ASSIGN(const wire::Answer answer, caller_.exchange(request, deadline, &presence_));
  CCOM_TRY(decode(answer));
  has_joined_ = true;
  // A server that does not compare builds: this rank leaves, which ends the rendezvous for all.
  const ServerProcess& server = caller_.server();
  if (server.build != request.build()) return other_build(caller_of(request), server.who, server.build);
  return Status::ok();
}

Status Client::probe(Deadline deadline) {
  CCOM_TRY_ASSIGN(const wire::Answer answer, caller_.exchange(caller_.identity(), deadline));
  return decode(answer);
}

Result<std::vector<std::string>> Client::all_gather(std::string_view phase, std::string mine, Deadline deadline) {
  CCOM_TRY(check_part(phase, caller_.identity().rank(), mine));
  if (caller_.was_interrupted()) return caller_.interruption();
  try {
    wire::Request request = caller_.identity();
    request.mutable_contribution()->CopyFrom(contribution_of(round_, phase, std::move(mine), deadline));
    CCOM_TRY_ASSIGN(wire::Answer answer, caller_.exchange(request, deadline));
    CCOM_TRY_ASSIGN(std::vector<std::string> parts, parts_of(answer, request));
    ++round_;
    return parts;
  } catch (const std::exception& failure) {
    return error(Code::OutOfMemory, "the start (%.*s): %s", static_cast<int>(phase.size()), phase.data(),
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
  wire::Request request = caller_.identity();
  request.mutable_leave();
  const Deadline deadline = Deadline::after(kLeaveTimeout);
  GrpcCall call;
  call.start(caller_.stub(), request, deadline);
  if (const grpc::Status status = call.wait(deadline) ? call.status() : grpc::Status::CANCELLED; !status.ok()) {
    log(LogLevel::Debug, "rank %d leaves the rendezvous server %s: %s", request.rank(), id().endpoint().c_str(),
        reason_of(status).c_str());
  }
}

}  // namespace

Result<std::unique_ptr<Rendezvous>> connect_rendezvous(const UniqueId& id, int nranks, Rank rank, Deadline deadline,
                                                       Interrupted interrupted, const RelayUse& relays) {
  if (nranks < 1 || nranks > kMaxRanks || rank < 0 || rank >= nranks) {
    return error(Code::InvalidArgument, "invalid rank %d of %d", rank, nranks);
  }
  try {
    if (id.rank0_serves && rank == 0) {
      const Status hosted = host_rendezvous(id, deadline);
      if (hosted.sys_errno() == EADDRINUSE) {
        const Status refusal = join_to_be_refused(id, nranks, rank, deadline.earlier(Deadline::after(kRefusalTimeout)));
        if (!refusal.is_ok() && refusal.key() == ErrorKey::RanksDisagree) return refusal;
      }
      CCOM_TRY(Status(hosted));
    }
    const bool is_here = relays.has_socket && keep_port_at(id.address, {});  // the address is one of this host
    if (is_here) {
      CCOM_TRY_ASSIGN(std::unique_ptr<Rendezvous> near, join_by_socket(id, nranks, rank, deadline, interrupted));
      if (near != nullptr) return near;
    }
    if (nranks > relays.most_without) {
      CCOM_TRY_ASSIGN(std::unique_ptr<Rendezvous> relayed,
                      join_by_relay(id, relays, nranks, rank, deadline, interrupted));
      if (relayed != nullptr) return relayed;
    }
    CCOM_TRY(check_start_resources());
    auto client = std::make_unique<Client>(id, nranks, rank, std::move(interrupted));
    CCOM_TRY(client->open());
    CCOM_TRY(client->join(deadline));
    return std::unique_ptr<Rendezvous>(std::move(client));
  } catch (const std::exception& failure) {
    return error(Code::OutOfMemory, "rank %d: connect to the rendezvous server: %s", rank, failure.what());
  }
}

Status RendezvousProbe::ask(const UniqueId& id, Deadline deadline) {
  try {
    if (const auto answer = probe_by_socket(id, nranks_, rank_, deadline)) return *answer;
    if (std::exchange(communicator_, id.communicator) != id.communicator) {
      plain_.reset();
      client_ = nullptr;
    }
    if (client_ == nullptr) {
      if (!plain_) {
        plain_.emplace(id, nranks_, rank_);
        plain_until_ = Deadline::after(kPlainTime);
      }
      const PlainProbe::Answer answer = plain_->ask(deadline.earlier(plain_until_));
      if (answer == PlainProbe::Answer::Pending && !plain_until_.passed())
        return error(ErrorKey::ServerUnreachable, "the rendezvous server %s has not answered rank %d yet",
                     id.endpoint().c_str(), rank_);
      plain_.reset();
      if (answer == PlainProbe::Answer::Admits) return Status::ok();
      if (answer == PlainProbe::Answer::Refused) return server_unreachable(id, rank_, {}, "Connection refused");
      CCOM_TRY(check_start_resources());
      auto made = std::make_unique<Client>(id, nranks_, rank_, Interrupted{});
      CCOM_TRY(made->open());
      client_ = std::move(made);
    }
    return static_cast<Client*>(client_.get())->probe(deadline);
  } catch (const std::exception& failure) {
    return error(Code::OutOfMemory, "probe the rendezvous server %s: %s", id.endpoint().c_str(), failure.what());
  }
}

Status join_to_be_refused(const UniqueId& id, int nranks, Rank rank, Deadline deadline) {
  RendezvousProbe probe(nranks, rank);
  Status answer = probe.ask(id, deadline);
  while (answer.is_ok() && !deadline.passed()) {  // a rank 0 whose server runs joins soon
    std::this_thread::sleep_for(10ms);
    answer = probe.ask(id, deadline);
  }
  if (answer.is_ok() || answer.key() != ErrorKey::RanksDisagree) return answer;
  UniqueId running = id;
  running.rank0_serves = false;
  const auto joined = connect_rendezvous(running, nranks, rank, deadline, {}, {.has_socket = true});
  return joined ? Status::ok() : joined.error();
}

}  // namespace ccom
