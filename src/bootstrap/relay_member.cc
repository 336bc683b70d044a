// SPDX-License-Identifier: Apache-2.0
//
// A rank's side of a rendezvous through a socket of its host: to the server, or to a relay.
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <iterator>
#include <optional>
#include <thread>

#include "base/log.h"
#include "base/tcp_socket.h"
#include "base/text.h"
#include "bootstrap/answers.h"
#include "bootstrap/gathering.h"
#include "bootstrap/grpc_caller.h"
#include "bootstrap/host_relay.h"
#include "bootstrap/start_wait.h"

namespace ccom {
namespace {

using namespace std::chrono_literals;

constexpr auto kRelayLookInterval = 50ms;
// Beyond the deadline, for the relay to say what was missing.
constexpr auto kAnswerTime = 500ms;

class RelayMember final : public Rendezvous {
 public:
  // id: of the server, if it is that.
  RelayMember(RelayLine line, std::optional<UniqueId> id, wire::Request self, Interrupted interrupted)
      : id_(std::move(id)), self_(std::move(self)), interrupted_(std::move(interrupted)), line_(std::move(line)) {}
  ~RelayMember() override;

  // Nothing, or false: who is there is not there for this rank.
  Result<std::optional<wire::Answer>> ask(const wire::Request& request, Deadline deadline);
  Result<bool> join(Deadline deadline);
  void own(std::unique_ptr<HostRelay> relay) { relay_ = std::move(relay); }
  Result<std::vector<std::string>> all_gather(std::string_view phase, std::string mine, Deadline deadline) override;
  bool has_failed() override { return line_.has_news() || is_interrupted(); }

 private:
  Result<std::vector<std::string>> gather(const wire::Request& request, Deadline deadline);
  Result<wire::Answer> await_answer(Deadline deadline);
  bool is_interrupted();
  Status lost() const;
  Status no_answer() const;

  const std::optional<UniqueId> id_;
  const wire::Request self_;
  const Interrupted interrupted_;
  std::atomic<bool> was_interrupted_ = false;
  std::unique_ptr<HostRelay> relay_;  // which this process is; null: another one is. It ends after the line
  RelayLine line_;
  ServerProcess peer_;  // at the other end
  bool has_joined_ = false;
  uint64_t round_ = 0;
};

bool RelayMember::is_interrupted() {
  if (!was_interrupted_ && interrupted_ && interrupted_()) was_interrupted_ = true;
  return was_interrupted_;
}

Status RelayMember::lost() const {
  if (id_) return server_lost(*id_, self_.rank(), peer_, "its socket is closed");
  const std::vector<int>& ranks = peer_.ranks;
  return error(ErrorKey::LostAtStart, "%s (%s) was lost during the start: it spoke for rank %d and others of its host",
               ranks.empty() ? "the relay of this host" : name_ranks(ranks).c_str(), peer_.who.c_str(), self_.rank())
      .with_peers(ranks);
}

Status RelayMember::no_answer() const {
  if (id_) return server_unreachable(*id_, self_.rank(), peer_, "no answer");
  return error(ErrorKey::ServerUnreachable, "rank %d has no answer from %s, which speaks for its host", self_.rank(),
               peer_.who.empty() ? "the process" : peer_.who.c_str());
}

Result<wire::Answer> RelayMember::await_answer(Deadline deadline) {
  const Deadline limit(deadline.when() + kAnswerTime);
  while (true) {
    line_.step();
    if (const std::optional<std::string> text = line_.receive()) {
      wire::Answer answer;
      if (!answer.ParseFromString(*text)) return lost();
      // A relay says of itself when it admits a rank, and passes on what the server says of itself.
      if (answer.has_server() && (id_ || !has_joined_)) peer_ = process_of(answer.server());
      return answer;
    }
    if (line_.has_ended()) return lost();
    if (is_interrupted())
      return error(ErrorKey::WaitInterrupted, "rank %d was interrupted while it met other ranks", self_.rank());
    if (limit.passed()) return no_answer();
    pollfd polled{line_.fd(), static_cast<short>(POLLIN | (line_.has_unsent() ? POLLOUT : 0)), 0};
    const auto slice = std::min<std::chrono::nanoseconds>(kRelayLookInterval, limit.left());
    ::poll(&polled, 1, static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(slice).count()));
  }
}

Result<std::optional<wire::Answer>> RelayMember::ask(const wire::Request& request, Deadline deadline) {
  const Deadline limit(deadline.when() + kAnswerTime);
  while (!line_.is_proved() && !line_.has_ended() && !limit.passed() && !is_interrupted()) {
    pollfd polled{line_.fd(), POLLIN, 0};
    ::poll(&polled, 1, static_cast<int>(kRelayLookInterval.count()));
    line_.step();
  }
  if (!line_.is_proved() && !is_interrupted()) return std::optional<wire::Answer>();
  if (line_.is_proved()) line_.send(request.SerializeAsString());
  Result<wire::Answer> answer = await_answer(deadline);
  if (!answer && line_.has_ended()) return std::optional<wire::Answer>();
  if (!answer) return std::move(answer).error();
  return std::optional(*std::move(answer));
}

Result<bool> RelayMember::join(Deadline deadline) {
  wire::Request request = self_;
  request.mutable_join();
  CCOM_TRY_ASSIGN(const std::optional<wire::Answer> answer, ask(request, deadline));
  if (!answer) return false;
  CCOM_TRY(decode(*answer));
  has_joined_ = true;
  return true;
}

Result<std::vector<std::string>> RelayMember::gather(const wire::Request& request, Deadline deadline) {
  line_.send(request.SerializeAsString());
  CCOM_TRY_ASSIGN(wire::Answer answer, await_answer(deadline));
  CCOM_TRY_ASSIGN(std::vector<std::string> parts, parts_of(answer, request));
  ++round_;
  return parts;
}

Result<std::vector<std::string>> RelayMember::all_gather(std::string_view phase, std::string mine, Deadline deadline) {
  CCOM_TRY(check_part(phase, self_.rank(), mine));
  try {
    wire::Request request = self_;
    request.mutable_contribution()->CopyFrom(contribution_of(round_, phase, std::move(mine), deadline));
    return gather(request, deadline);
  } catch (const std::exception& failure) {
    return error(Code::OutOfMemory, "the start (%.*s): %s", static_cast<int>(phase.size()), phase.data(),
                 failure.what());
  }
}

RelayMember::~RelayMember() {
  try {
    wire::Request request = self_;
    request.mutable_leave();
    if (has_joined_ && !line_.has_ended()) line_.send(request.SerializeAsString());
  } catch (const std::bad_alloc&) {  // the connection's end tells the relay
  }
  line_.close();
}

}  // namespace

Result<std::unique_ptr<Rendezvous>> join_by_relay(const UniqueId& id, const RelayUse& use, int nranks, Rank rank,
                                                  Deadline deadline, const Interrupted& interrupted) {
  const RelayPlace place(id, use.host);
  const wire::Request self = identity_of(nranks, rank);
  std::unique_ptr<HostRelay> relay;
  if (RelaySocket listener = place.listen(); listener.is_open()) {
    CCOM_TRY_ASSIGN(relay, HostRelay::start(id, use, std::move(listener), self, deadline));
  }
  Descriptor socket = place.connect();
  if (!socket.is_open()) return std::unique_ptr<Rendezvous>();
  auto member = std::make_unique<RelayMember>(RelayLine::connected(std::move(socket), place, rank), std::nullopt, self,
                                              interrupted);
  member->own(std::move(relay));
  CCOM_TRY_ASSIGN(const bool has_joined, member->join(deadline));
  if (!has_joined) return std::unique_ptr<Rendezvous>();
  return std::unique_ptr<Rendezvous>(std::move(member));
}

namespace {

// Whether anybody listens at the address, or it cannot be known soon.
bool is_listened_to(const UniqueId& id) {
  const Result<Descriptor> socket = begin_to_connect(id.address, id.port);
  if (!socket) return false;
  pollfd polled{socket->get(), POLLOUT, 0};
  if (::poll(&polled, 1, static_cast<int>(kRelayLookInterval.count())) <= 0) return true;
  int reason = 0;
  socklen_t size = sizeof reason;
  return ::getsockopt(socket->get(), SOL_SOCKET, SO_ERROR, &reason, &size) == 0 && reason == 0;
}

// Waits for the server's socket: as long as nobody listens at the address, the server may still come.
class ServerSocket {
 public:
  ServerSocket(const UniqueId& id, Rank rank, Deadline deadline)
      : id_(id), rank_(rank), deadline_(deadline), place_(RelayPlace::of_server(id.secret, id.communicator)) {}

  const RelayPlace& place() const { return place_; }
  // Not open: the server has none for this process.
  Result<Descriptor> open(const Interrupted& interrupted) {
    while (true) {
      if (deadline_.passed()) return server_unreachable(id_, rank_, {}, reason_);
      if (Descriptor socket = place_.try_to_connect(); socket.is_open()) return socket;
      if (interrupted && interrupted()) return interrupted_at_server(id_, rank_);
      if (Clock::now() - last_look_ > kRelayLookInterval) {
        last_look_ = Clock::now();
        looks_ = is_listened_to(id_) ? looks_ + 1 : 0;
        if (looks_ == kEnoughLooks) return Descriptor();
        if (looks_ > 0) refused_until_ = Deadline::after(kRefusedTime);
      }
      if (!id_.rank0_serves && refused_until_.passed()) return server_unreachable(id_, rank_, {}, reason_);
      pause();
    }
  }
  // The server does not answer this rank: it ends, or is that of an earlier start, which has not ended.
  void turn_away() {
    reason_ = "the previous rendezvous at this address has not ended yet";
    pause();
  }

 private:
  void pause() {
    if (wait_.is_due())
      log(LogLevel::Warn, "rank %d has waited %.0f s for the rendezvous server %s%s: %s", rank_, wait_.seconds(),
          id_.endpoint().c_str(), id_.is_rank0s() ? " of rank 0" : "", reason_);
    std::this_thread::sleep_for(std::min<std::chrono::nanoseconds>(pause_, deadline_.left()));
    pause_ = std::min<std::chrono::milliseconds>(pause_ * 2, kLongestPause);
  }

  static constexpr auto kLongestPause = 10ms;
  static constexpr int kEnoughLooks = 3;
  // Where the server of an id ran before the id was known.
  static constexpr auto kRefusedTime = 2s;

  const UniqueId& id_;
  const Rank rank_;
  const Deadline deadline_;
  const RelayPlace place_;
  const char* reason_ = "Connection refused";
  std::chrono::milliseconds pause_ = 1ms;
  Clock::time_point last_look_ = Clock::now();
  int looks_ = 0;  // in a row in which somebody listened
  Deadline refused_until_ = Deadline::after(kRefusedTime);
  StartWait wait_{start_warning_ms()};
};

}  // namespace

Result<std::unique_ptr<Rendezvous>> join_by_socket(const UniqueId& id, int nranks, Rank rank, Deadline deadline,
                                                   const Interrupted& interrupted) {
  const wire::Request self = identity_of(nranks, rank);
  ServerSocket server(id, rank, deadline);
  while (true) {
    CCOM_TRY_ASSIGN(Descriptor socket, server.open(interrupted));
    if (!socket.is_open()) return std::unique_ptr<Rendezvous>();
    auto member = std::make_unique<RelayMember>(RelayLine::connected(std::move(socket), server.place(), rank), id, self,
                                                interrupted);
    CCOM_TRY_ASSIGN(const bool has_joined, member->join(deadline));
    if (has_joined) return std::unique_ptr<Rendezvous>(std::move(member));
    server.turn_away();
  }
}

std::optional<Status> probe_by_socket(const UniqueId& id, int nranks, Rank rank, Deadline deadline) {
  const RelayPlace place = RelayPlace::of_server(id.secret, id.communicator);
  Descriptor socket = place.try_to_connect();
  if (!socket.is_open()) return std::nullopt;
  const wire::Request self = identity_of(nranks, rank);
  RelayMember member(RelayLine::connected(std::move(socket), place, rank), id, self, {});
  const Result<std::optional<wire::Answer>> answer = member.ask(self, deadline);
  if (!answer) return answer.error();
  return *answer ? std::optional(decode(**answer)) : std::nullopt;
}

}  // namespace ccom
