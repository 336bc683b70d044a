// SPDX-License-Identifier: Apache-2.0
//
// A rank's side of a rendezvous through the relay of its host.
#include <poll.h>

#include <algorithm>
#include <atomic>
#include <iterator>

#include "base/text.h"
#include "bootstrap/gathering.h"
#include "bootstrap/grpc_answer.h"
#include "bootstrap/grpc_caller.h"
#include "bootstrap/host_relay.h"

namespace ccom {
namespace {

using namespace std::chrono_literals;

constexpr auto kRelayLookInterval = 50ms;
// Beyond the deadline, for the relay to say what was missing.
constexpr auto kAnswerTime = 500ms;

class RelayMember final : public Rendezvous {
 public:
  RelayMember(RelayLine line, wire::Request self, Interrupted interrupted)
      : self_(std::move(self)), interrupted_(std::move(interrupted)), line_(std::move(line)) {}
  ~RelayMember() override;

  // Nothing: the relay is not there for this rank.
  Result<bool> join(Deadline deadline);
  void own(std::unique_ptr<HostRelay> relay) { relay_ = std::move(relay); }
  Result<std::vector<std::string>> all_gather(std::string_view phase, std::string mine, Deadline deadline) override;
  bool has_failed() override { return line_.has_news() || is_interrupted(); }

 private:
  Result<std::vector<std::string>> gather(const wire::Request& request, Deadline deadline);
  Result<wire::Answer> await_answer(Deadline deadline);
  bool is_interrupted();
  Status lost() const;

  const wire::Request self_;
  const Interrupted interrupted_;
  std::atomic<bool> was_interrupted_ = false;
  std::unique_ptr<HostRelay> relay_;  // which this process is; null: another one is. It ends after the line
  RelayLine line_;
  wire::Server relays_;  // its process
  bool has_joined_ = false;
  uint64_t round_ = 0;
};

bool RelayMember::is_interrupted() {
  if (!was_interrupted_ && interrupted_ && interrupted_()) was_interrupted_ = true;
  return was_interrupted_;
}

Status RelayMember::lost() const {
  const std::vector<int> ranks(relays_.ranks().begin(), relays_.ranks().end());
  return error(ErrorKey::LostAtStart, "%s (%s) was lost during the start: it spoke for rank %d and others of its host",
               ranks.empty() ? "the relay of this host" : name_ranks(ranks).c_str(), relays_.who().c_str(),
               self_.rank())
      .with_peers(ranks);
}

Result<wire::Answer> RelayMember::await_answer(Deadline deadline) {
  const Deadline limit(deadline.when() + kAnswerTime);
  while (true) {
    line_.step();
    if (const std::optional<std::string> text = line_.receive()) {
      wire::Answer answer;
      if (!answer.ParseFromString(*text)) return lost();
      return answer;
    }
    if (line_.has_ended()) return lost();
    if (is_interrupted())
      return error(ErrorKey::WaitInterrupted, "rank %d was interrupted while it met other ranks", self_.rank());
    if (limit.passed())
      return error(ErrorKey::ServerUnreachable, "rank %d has no answer from %s, which speaks for its host",
                   self_.rank(), relays_.who().empty() ? "the process" : relays_.who().c_str());
    pollfd polled{line_.fd(), static_cast<short>(POLLIN | (line_.has_unsent() ? POLLOUT : 0)), 0};
    const auto slice = std::min<std::chrono::nanoseconds>(kRelayLookInterval, limit.left());
    ::poll(&polled, 1, static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(slice).count()));
  }
}

Result<bool> RelayMember::join(Deadline deadline) {
  const Deadline limit(deadline.when() + kAnswerTime);
  while (!line_.is_proved() && !line_.has_ended() && !limit.passed() && !is_interrupted()) {
    pollfd polled{line_.fd(), POLLIN, 0};
    ::poll(&polled, 1, static_cast<int>(kRelayLookInterval.count()));
    line_.step();
  }
  if (!line_.is_proved() && !is_interrupted()) return false;
  wire::Request request = self_;
  request.mutable_join();
  if (line_.is_proved()) line_.send(request.SerializeAsString());
  const Result<wire::Answer> answer = await_answer(deadline);
  if (!answer && line_.has_ended()) return false;
  if (!answer) return answer.error();
  CCOM_TRY(decode(*answer));
  relays_ = answer->server();
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
  if (Descriptor listener = place.listen(); listener.is_open()) {
    CCOM_TRY_ASSIGN(relay, HostRelay::start(id, use, std::move(listener), self, deadline));
  }
  Descriptor socket = place.connect();
  if (!socket.is_open()) return std::unique_ptr<Rendezvous>();
  auto member = std::make_unique<RelayMember>(RelayLine::connected(std::move(socket), place, rank), self, interrupted);
  member->own(std::move(relay));
  CCOM_TRY_ASSIGN(const bool has_joined, member->join(deadline));
  if (!has_joined) return std::unique_ptr<Rendezvous>();
  return std::unique_ptr<Rendezvous>(std::move(member));
}

}  // namespace ccom
