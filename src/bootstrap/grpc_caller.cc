// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/grpc_caller.h"

#include <algorithm>
#include <iterator>

#include "base/log.h"
#include "base/text.h"
#include "base/thread.h"
#include "bootstrap/gathering.h"
#include "bootstrap/grpc_channel.h"
#include "bootstrap/start_wait.h"
#include "bootstrap/this_build.h"

namespace ccom {
namespace {

using namespace std::chrono_literals;

constexpr auto kInterruptInterval = 50ms;
// How long to retry after the peer has failed authentication: an older job may just be shutting down there. And how
// often at least: on a crowded machine handshakes fail because they take too long.
constexpr auto kAuthenticationTimeout = 2s;
constexpr int kAuthenticationAttempts = 5;
// The same after the server has disappeared: a lost connection is soon replaced.
constexpr auto kLostTimeout = 500ms;
// The same where nobody listens at the address of an id whose server ran before the id was known.
constexpr auto kRefusedTimeout = 2s;

}  // namespace

wire::Request identity_of(int nranks, Rank rank) {
  wire::Request request;
  request.set_rank(rank);
  request.set_nranks(nranks);
  request.set_token(random_u64());
  request.set_who(this_process());
  request.set_build(this_build());
  return request;
}

Status check_part(std::string_view phase, Rank rank, const std::string& part) {
  if (part.size() <= kMaxPartBytes) return Status::ok();
  return error(Code::InvalidArgument, "the start (%.*s): rank %d contributes %zu bytes, the maximum is %zu",
               static_cast<int>(phase.size()), phase.data(), rank, part.size(), kMaxPartBytes);
}

wire::Contribution contribution_of(uint64_t round, std::string_view phase, std::string part, Deadline deadline) {
  const int64_t left = deadline.left_ms();
  wire::Contribution step;
  step.set_round(round);
  step.set_phase(std::string(phase));
  step.set_part(std::move(part));
  step.set_timeout_ms(left - std::min<int64_t>(left / 4, 500));  // leaves time for the answer to travel
  return step;
}

Result<std::vector<std::string>> parts_of(wire::Answer& answer, const wire::Request& request) {
  CCOM_TRY(decode(answer));
  if (answer.parts_size() != request.nranks()) {
    return error(Code::InternalError, "the start (%s) returned %d parts for %d ranks",
                 request.contribution().phase().c_str(), answer.parts_size(), request.nranks());
  }
  return std::vector<std::string>(std::make_move_iterator(answer.mutable_parts()->begin()),
                                  std::make_move_iterator(answer.mutable_parts()->end()));
}

Status GrpcCaller::open() {
  CCOM_TRY_ASSIGN(const TlsIdentity identity, make_tls_identity(id_.secret));
  const SignalsBlocked blocked;
  channel_ = open_channel(id_, identity);
  stub_ = wire::RendezvousService::NewStub(channel_);
  return Status::ok();
}

Status GrpcCaller::explain(const grpc::Status& status) const {
  const int rank = request_.rank();
  const std::string endpoint = id_.endpoint();
  const std::string reason = reason_of(status);
  if (is_authentication_failure(status)) {
    // The rank has seen a server that held the secret: rank 0's id was read after its server had answered.
    if (has_answered_ || id_.rank0_made)
      return server_lost(id_, rank, server_, "another program listens there now: " + reason);
    return error(ErrorKey::WrongSecret,
                 "rank %d: authentication failed: the process listening at %s does not hold this job's secret: %s",
                 rank, endpoint.c_str(), reason.c_str())
        .with_cure("check that all ranks use the same unique id or secret, and that no other program uses this port");
  }
  if (has_answered_ && is_retryable(status)) {
    return server_lost(id_, rank, server_, reason);
  }
  if (!is_retryable(status) && status.error_code() != grpc::StatusCode::DEADLINE_EXCEEDED) {
    return error(Code::TransportError, "rank %d: the rendezvous server %s refused the request: %s", rank,
                 endpoint.c_str(), reason.c_str());
  }
  return server_unreachable(id_, rank, server_, reason);
}

bool GrpcCaller::is_interrupted() {
  if (!was_interrupted_ && interrupted_ && interrupted_()) was_interrupted_ = true;
  return was_interrupted_;
}

// As the stub's blocking call, until the caller does not want to wait any longer.
grpc::Status GrpcCaller::attempt(const wire::Request& request, Deadline deadline, wire::Answer& answer) {
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

// Ok, too, if the server has answered it: a request to join hears why.
grpc::Status GrpcCaller::open_presence(GrpcCall& presence, Deadline deadline, StartWait& wait) {
  if (presence.is_open()) return {};
  wire::Request request = request_;
  request.mutable_presence();
  presence.start_open(*stub_, request);
  while (!presence.wait_until_open(deadline.earlier(Deadline::after(kInterruptInterval)))) {
    if (is_interrupted()) return {grpc::StatusCode::CANCELLED, ""};
    if (deadline.passed()) return {grpc::StatusCode::DEADLINE_EXCEEDED, ""};
    if (wait.is_due()) warn(wait, "no answer");
  }
  return presence.has_ended() ? presence.status() : grpc::Status();
}

void GrpcCaller::warn(const StartWait& wait, const std::string& reason) const {
  log(LogLevel::Warn, "rank %d has waited %.0f s for the rendezvous server %s%s: %s", request_.rank(), wait.seconds(),
      id_.endpoint().c_str(), id_.is_rank0s() ? " of rank 0" : "", reason.c_str());
}

Result<wire::Answer> GrpcCaller::exchange(const wire::Request& request, Deadline deadline, GrpcCall* presence) {
  auto pause = 10ms;
  Deadline limit = deadline, until = deadline;
  StartWait wait(has_answered_ ? 0 : start_warning_ms());
  int failures = 0;  // of authentication
  Deadline refused_until = Deadline::after(kRefusedTimeout);
  grpc::Status why;  // an attempt cut short by the deadline gives a less useful reason than the one before
  while (true) {
    wire::Answer answer;
    grpc::Status status = presence == nullptr ? grpc::Status() : open_presence(*presence, deadline, wait);
    if (status.ok()) status = attempt(request, deadline, answer);
    if (status.ok()) {
      has_answered_ = true;
      if (answer.has_server()) server_ = process_of(answer.server());
      return answer;
    }
    if (is_interrupted()) return interruption();
    if (why.ok() || status.error_code() != grpc::StatusCode::DEADLINE_EXCEEDED) why = status;
    if (is_authentication_failure(status) && failures++ == 0) until = Deadline::after(kAuthenticationTimeout);
    if (failures >= kAuthenticationAttempts) limit = limit.earlier(until);
    if (has_answered_) limit = limit.earlier(Deadline::after(kLostTimeout));
    if (id_.rank0_serves || reason_of(status) != "Connection refused") refused_until = Deadline::after(kRefusedTimeout);
    if (refused_until.passed()) return explain(status);
    if (!is_retryable(status) || limit.passed()) return explain(why);
    if (wait.is_due()) warn(wait, reason_of(why));
    // Not a plain sleep: gRPC continues a connection attempt only while a thread waits on the channel (else every 5 s).
    const SignalsBlocked blocked;
    channel_->WaitForConnected(grpc_deadline(limit.earlier(Deadline::after(pause))));
    pause = std::min(pause * 2, 100ms);
  }
}

}  // namespace ccom
