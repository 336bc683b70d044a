// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/host_relay.h"

#include <algorithm>
#include <atomic>
#include <iterator>
#include <map>
#include <optional>
#include <thread>
#include <vector>

#include "base/log.h"
#include "base/thread.h"
#include "bootstrap/answers.h"
#include "bootstrap/gathering.h"
#include "bootstrap/grpc_caller.h"
#include "bootstrap/relay_children.h"
#include "bootstrap/relay_ranks.h"
#include "bootstrap/start_resources.h"

namespace ccom {
namespace {

using namespace std::chrono_literals;

// Between looks at the other side, while one is waited for.
constexpr auto kRelaySlice = 2ms;
// How long it serves others after its own rank has left.
constexpr auto kRelayTellingTime = 2s;
// Until the own rank, which has joined, is told so, if its presence is not acknowledged before.
constexpr auto kPresenceTime = 2s;
// For another relay, before the server is asked in its place.
constexpr auto kOtherRelayTime = 3s;

}  // namespace

// Used by its thread, but for end().
class HostRelay::Impl {
 public:
  Impl(const UniqueId& id, const RelayPlace& place, RelaySocket listener, const wire::Request& self, Deadline deadline)
      : ranks_(place, std::move(listener)),
        own_(self.rank()),
        deadline_(deadline),
        self_(self),
        children_({.who = self.who(), .build = self.build(), .ranks = {self.rank()}}) {
    speak_to(id);
  }

  // ports: where relays of other hosts can reach this one; nothing: nowhere.
  Status start(const std::optional<PortRange>& ports) {
    if (ports) children_.listen(caller_->id(), *ports);
    CCOM_TRY(caller_->open());
    if (const int refused = start_thread(thread_, "ccom-relay", [this] { run(); }); refused != 0)
      return system_error(refused, "start the thread that speaks for the ranks of this host");
    return {};
  }
  void end() {
    left_ns_ = Clock::now().time_since_epoch().count();
    if (thread_.joinable()) thread_.join();
  }

 private:
  using Ranks = std::vector<RelayedRank*>;
  using Members = std::vector<wire::Member>;

  // So long after its own rank has left that others can wait no longer.
  bool is_late() const {
    const int64_t left_ns = left_ns_;
    return left_ns != 0 && Clock::now().time_since_epoch() > std::chrono::nanoseconds(left_ns) + kRelayTellingTime;
  }
  bool is_over() const { return left_ns_ != 0 && (is_late() || (ranks_.may_end(own_) && children_.may_end())); }
  void run();
  void speak_to(const UniqueId& whom) {
    caller_ = std::make_unique<GrpcCaller>(whom, self_, [this] { return is_late(); });
  }
  void fail(const Status& status) {
    ranks_.fail(status);
    children_.fail(status);
  }
  template <typename Fill>
  Status tell_server(Members members, Deadline deadline, Fill fill);
  Status join(const Members& members);
  void pass_joins();
  void welcome(const Ranks& joined);
  void pass_losses();
  void pass_parts(bool is_quiet);
  void pass_parts_of(uint64_t round, const std::string& phase);
  bool pass_some(uint64_t round, const std::string& phase, Members members, Deadline limit);
  void pass_leaves(Members members);
  wire::Request await_of(uint64_t round) const;
  void await(uint64_t round);
  void look_at_rounds();
  void deliver(uint64_t round, wire::Answer& answer);
  void look_at_presence();
  Members leaving(bool (*picks)(const RelayedRank&));
  Members last_to_leave();

  RelayRanks ranks_;
  const Rank own_;
  const Deadline deadline_;
  std::atomic<int64_t> left_ns_ = 0;  // when its own rank has left
  const wire::Request self_;
  std::unique_ptr<GrpcCaller> caller_;  // of the server, or of another relay
  bool has_way_ = false;                // it is known which
  RelayChildren children_;
  // What is left open at the server: that this process is there, and the rounds that ranks here wait for.
  GrpcCall presence_;
  bool is_present_ = false;
  std::map<uint64_t, GrpcCall> awaited_;
  std::thread thread_;
};

void HostRelay::Impl::run() {
  try {
    while (!is_over()) {
      const bool is_waiting = !awaited_.empty();  // look_at_rounds() does
      bool has_come = children_.step();
      has_come |= ranks_.step(is_waiting || has_come ? 0ms : kRelaySlice);
      pass_joins();
      pass_losses();
      pass_parts(!has_come);
      for (RelayChildren::Parts& each : children_.take_parts())
        (void)pass_some(each.round, each.phase, std::move(each.members), deadline_);
      for (const auto& [round, limit] : children_.awaited()) await(round);
      look_at_rounds();
      look_at_presence();
      pass_leaves(leaving([](const RelayedRank& rank) { return rank.has_joined && rank.has_left; }));
    }
    ranks_.stop_listening();
    pass_leaves(last_to_leave());
  } catch (const std::bad_alloc&) {
    log(LogLevel::Error, "the relay of this host's ranks ran out of memory");
  }
  ranks_.stop_listening();
  ranks_.all().clear();
  awaited_.clear();
  presence_.end();
}

template <typename Fill>
Status HostRelay::Impl::tell_server(Members members, Deadline deadline, Fill fill) {
  wire::Request request = self_;
  fill(request);
  for (wire::Member& member : members) *request.add_also() = std::move(member);
  CCOM_TRY_ASSIGN(const wire::Answer answer, caller_->exchange(request, deadline));
  return decode(answer);
}

// The first time the server says who is to be spoken to; if that relay cannot be reached, it is the server.
Status HostRelay::Impl::join(const Members& members) {
  wire::Request request = self_;
  request.mutable_join();
  for (const wire::Member& member : members) *request.add_also() = member;
  wire::Request first = request;
  if (!has_way_) first.mutable_join()->set_relay_at(children_.endpoint());
  CCOM_TRY_ASSIGN(const wire::Answer answer, caller_->exchange(first, deadline_));
  has_way_ = true;
  const Result<HostPort> way = parse_host_port(answer.speak_to());
  if (answer.speak_to().empty() || !way) return decode(answer);
  const UniqueId server = caller_->id();
  UniqueId relay = server;
  relay.address = way->host;
  relay.port = way->port;
  relay.rank0_serves = relay.rank0_made = false;
  speak_to(relay);
  CCOM_TRY(caller_->open());
  if (const auto joined = caller_->exchange(request, deadline_.earlier(Deadline::after(kOtherRelayTime))))
    return decode(*joined);
  log(LogLevel::Info, "the relay of other ranks at %s cannot be reached: this one speaks to the server",
      answer.speak_to().c_str());
  speak_to(server);
  CCOM_TRY(caller_->open());
  CCOM_TRY_ASSIGN(const wire::Answer direct, caller_->exchange(request, deadline_));
  return decode(direct);
}

void HostRelay::Impl::pass_joins() {
  ranks_.close_repeated();
  const Ranks joining = ranks_.select([](const RelayedRank& rank) { return rank.asks_to_join; });
  if (!joining.empty()) {
    const Status told = join(members_of(joining));
    if (!told.is_ok()) return fail(told);
    welcome(joining);
  }
  for (const RelayChildren::Joining& each : children_.take_joins()) {
    const Status told = has_way_ ? tell_server(each.members, deadline_, [](auto& request) { request.mutable_join(); })
                                 : join(each.members);
    children_.answer(each, told);
    if (!told.is_ok()) fail(told);
  }
}

void HostRelay::Impl::welcome(const Ranks& joined) {
  wire::Answer welcome;
  welcome.mutable_server()->set_who(self_.who());
  welcome.mutable_server()->add_ranks(own_);
  for (RelayedRank* const rank : joined) {
    rank->has_joined = true;
    if (rank->self.rank() == own_) {
      wire::Request presence = self_;
      presence.mutable_presence();
      presence_.start_open(caller_->stub(), presence);
      (void)presence_.wait_until_open(Deadline::after(kPresenceTime));
      is_present_ = true;
    }
    RelayRanks::answer(*rank, RelayedText(welcome.SerializeAsString()));
  }
}

void HostRelay::Impl::pass_losses() {
  const Ranks lost = ranks_.select([](const RelayedRank& rank) { return rank.is_lost(); });
  Members members = members_of(lost);
  std::ranges::move(children_.take_losses(), std::back_inserter(members));
  if (members.empty()) return;
  const Status told = tell_server(std::move(members), Deadline::after(kRelayTellingTime),
                                  [](wire::Request& request) { request.mutable_lost(); });
  for (RelayedRank* const rank : lost) rank->has_joined = false;
  if (!told.is_ok()) fail(told);
}

// In few requests: when all that have joined have said something, or nobody has for a moment.
void HostRelay::Impl::pass_parts(bool is_quiet) {
  const auto has_part = [](const RelayedRank& rank) { return rank.has_part; };
  Ranks saying = ranks_.select(has_part);
  const size_t present = ranks_.select([](const RelayedRank& rank) { return rank.is_present(); }).size();
  if (!is_quiet && saying.size() < present) return;
  for (; !saying.empty(); saying = ranks_.select(has_part)) pass_parts_of(saying[0]->round, saying[0]->phase);
}

void HostRelay::Impl::pass_parts_of(uint64_t round, const std::string& phase) {
  Members saying;
  size_t bytes = 0;
  Deadline limit = deadline_;
  for (RelayedRank& rank : ranks_.all()) {
    if (!rank.has_part || rank.round != round || rank.phase != phase || bytes > kMostRelayedAtOnce) continue;
    bytes += rank.self.part().size();
    saying.push_back(rank.self);
    limit = limit.earlier(rank.limit);
    rank.has_part = false;
    rank.self.clear_part();
  }
  if (pass_some(round, phase, std::move(saying), limit)) await(round);
}

bool HostRelay::Impl::pass_some(uint64_t round, const std::string& phase, Members members, Deadline limit) {
  const Status told = tell_server(std::move(members), limit, [&](wire::Request& request) {
    wire::Contribution& step = *request.mutable_contribution();
    step.set_round(round);
    step.set_phase(phase);
    step.set_is_relayed(true);
  });
  if (!told.is_ok()) fail(told);
  return told.is_ok();
}

HostRelay::Impl::Members HostRelay::Impl::leaving(bool (*picks)(const RelayedRank&)) {
  const Ranks ranks = ranks_.select(picks);
  for (RelayedRank* const rank : ranks) {
    rank->has_joined = false;
    rank->has_left = true;
  }
  return members_of(ranks);
}

// With those that have not said so.
HostRelay::Impl::Members HostRelay::Impl::last_to_leave() {
  const RelayedRank* const own = ranks_.find(own_);
  Members members = children_.present(own == nullptr ? 0 : own->answered);
  std::ranges::move(leaving([](const RelayedRank& rank) { return rank.has_joined; }), std::back_inserter(members));
  return members;
}

void HostRelay::Impl::pass_leaves(Members members) {
  std::ranges::move(children_.take_leaves(), std::back_inserter(members));
  if (members.empty()) return;
  (void)tell_server(std::move(members), Deadline::after(kRelayTellingTime),
                    [](wire::Request& request) { request.mutable_leave(); });
}

wire::Request HostRelay::Impl::await_of(uint64_t round) const {
  Deadline limit = deadline_;
  for (const RelayedRank& rank : ranks_.all())
    if (rank.waits && rank.round == round) limit = limit.earlier(rank.limit);
  if (const auto theirs = children_.awaited(); theirs.contains(round)) limit = limit.earlier(theirs.at(round));
  wire::Request request = self_;
  request.mutable_await()->set_round(round);
  request.mutable_await()->set_timeout_ms(limit.left_ms());
  return request;
}

void HostRelay::Impl::await(uint64_t round) {
  const auto [place, is_new] = awaited_.try_emplace(round);
  if (is_new) place->second.start(caller_->stub(), await_of(round), Deadline(deadline_.when() + kRelayTellingTime));
}

void HostRelay::Impl::look_at_rounds() {
  for (auto place = awaited_.begin(); place != awaited_.end();) {
    auto& [round, call] = *place;
    if (!call.wait(Deadline::after(kRelaySlice))) {
      ++place;
      continue;
    }
    if (call.status().ok()) {
      deliver(round, call.answer());
    } else {  // the connection is lost, or comes back
      Result<wire::Answer> again = caller_->exchange(await_of(round), deadline_);
      again ? deliver(round, *again) : fail(again.error());
    }
    place = awaited_.erase(place);
  }
}

void HostRelay::Impl::deliver(uint64_t round, wire::Answer& said) {
  if (const Status status = decode(said); !status.is_ok()) return fail(status);
  const RelayedText text(said.SerializeAsString());
  for (RelayedRank& rank : ranks_.all()) {
    if (!rank.waits || rank.round != round) continue;
    RelayRanks::answer(rank, text);
    rank.answered = round + 1;
  }
  children_.deliver(round, said);
}

// It ends when its rank has left, or the rendezvous has failed; why, the server says to who asks.
void HostRelay::Impl::look_at_presence() {
  if (!is_present_ || !presence_.has_ended()) return;
  is_present_ = false;
  const RelayedRank* const own = ranks_.find(own_);
  if (!ranks_.failure().is_ok() || own == nullptr || own->has_left) return;
  const Status status = tell_server({}, Deadline::after(kRelayTellingTime), [](wire::Request&) {});
  if (!status.is_ok()) fail(status);
}

HostRelay::HostRelay(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
HostRelay::~HostRelay() {
  impl_->end();
  const SignalsBlocked blocked;  // as where gRPC is used
  impl_.reset();
}

Result<std::unique_ptr<HostRelay>> HostRelay::start(const UniqueId& id, const RelayUse& use, RelaySocket listener,
                                                    const wire::Request& self, Deadline deadline) {
  CCOM_TRY(check_start_resources());
  const SignalsBlocked blocked;
  auto impl = std::make_unique<Impl>(id, RelayPlace(id, use.host), std::move(listener), self, deadline);
  CCOM_TRY(impl->start(self.nranks() > use.most_in_star ? std::optional(use.ports) : std::nullopt));
  return std::unique_ptr<HostRelay>(new HostRelay(std::move(impl)));
}

}  // namespace ccom
