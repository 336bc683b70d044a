// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/host_relay.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <thread>
#include <vector>

#include "base/log.h"
#include "base/thread.h"
#include "bootstrap/gathering.h"
#include "bootstrap/grpc_answer.h"
#include "bootstrap/grpc_caller.h"
#include "bootstrap/relay_ranks.h"
#include "bootstrap/start_resources.h"

namespace ccom {
namespace {

using namespace std::chrono_literals;

// Between looks at the other side, while one is waited for.
constexpr auto kRelaySlice = 2ms;
// How long it serves others after its own rank has left.
constexpr auto kRelayTellingTime = 2s;
constexpr size_t kMostAtOnce = 4 * kMaxPartBytes;  // and one part more

}  // namespace

// Used by its thread, but for end().
class HostRelay::Impl {
 public:
  Impl(const UniqueId& id, const RelayPlace& place, Descriptor listener, const wire::Request& self, Deadline deadline)
      : ranks_(place, std::move(listener)),
        own_(self.rank()),
        deadline_(deadline),
        caller_(id, self, [this] { return is_late(); }) {}

  Status start() {
    CCOM_TRY(caller_.open());
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

  // So long after its own rank has left that others can wait no longer.
  bool is_late() const {
    const int64_t left_ns = left_ns_;
    return left_ns != 0 && Clock::now().time_since_epoch() > std::chrono::nanoseconds(left_ns) + kRelayTellingTime;
  }
  bool is_over() const { return left_ns_ != 0 && (is_late() || ranks_.may_end(own_)); }
  void run();
  template <typename Fill>
  Status tell_server(const Ranks& ranks, Deadline deadline, Fill fill);
  void pass_joins();
  void pass_losses();
  void pass_parts(bool is_quiet);
  void pass_parts_of(uint64_t round, const std::string& phase);
  void pass_leaves(bool (*picks)(const RelayedRank&));
  wire::Request await_of(uint64_t round) const;
  void await(uint64_t round);
  void look_at_rounds();
  void deliver(uint64_t round, const wire::Answer& answer);
  void look_at_presence();

  RelayRanks ranks_;
  const Rank own_;
  const Deadline deadline_;
  std::atomic<int64_t> left_ns_ = 0;  // when its own rank has left
  GrpcCaller caller_;
  // What is left open at the server: that this process is there, and the rounds that ranks here wait for.
  GrpcCall presence_;
  bool is_present_ = false;
  std::map<uint64_t, GrpcCall> awaited_;
  std::thread thread_;
};

void HostRelay::Impl::run() {
  try {
    while (!is_over()) {
      const bool has_come = ranks_.step(awaited_.empty() ? kRelaySlice : 0ms);
      pass_joins();
      pass_losses();
      pass_parts(!has_come);
      look_at_rounds();
      look_at_presence();
      pass_leaves([](const RelayedRank& rank) { return rank.has_joined && rank.has_left; });
    }
    ranks_.stop_listening();
    pass_leaves([](const RelayedRank& rank) { return rank.has_joined; });
  } catch (const std::bad_alloc&) {
    log(LogLevel::Error, "the relay of this host's ranks ran out of memory");
  }
  ranks_.stop_listening();
  ranks_.all().clear();
  awaited_.clear();
  presence_.end();
}

template <typename Fill>
Status HostRelay::Impl::tell_server(const Ranks& ranks, Deadline deadline, Fill fill) {
  wire::Request request = caller_.identity();
  fill(request);
  for (const RelayedRank* const rank : ranks) *request.add_also() = rank->self;
  CCOM_TRY_ASSIGN(const wire::Answer answer, caller_.exchange(request, deadline));
  return decode(answer);
}

void HostRelay::Impl::pass_joins() {
  const Ranks joining = ranks_.select([](const RelayedRank& rank) { return rank.asks_to_join; });
  if (joining.empty()) return;
  const Status told = tell_server(joining, deadline_, [](wire::Request& request) { request.mutable_join(); });
  if (!told.is_ok()) return ranks_.fail(told);
  wire::Answer welcome;
  welcome.mutable_server()->set_who(caller_.identity().who());
  welcome.mutable_server()->add_ranks(own_);
  for (RelayedRank* const rank : joining) {
    rank->has_joined = true;
    RelayRanks::answer(*rank, welcome.SerializeAsString());
    if (rank->self.rank() != own_) continue;
    wire::Request presence = caller_.identity();
    presence.mutable_presence();
    presence_.start(caller_.stub(), presence);
    is_present_ = true;
  }
}

void HostRelay::Impl::pass_losses() {
  const Ranks lost = ranks_.select([](const RelayedRank& rank) { return rank.is_lost(); });
  if (lost.empty()) return;
  const Status told =
      tell_server(lost, Deadline::after(kRelayTellingTime), [](wire::Request& request) { request.mutable_lost(); });
  for (RelayedRank* const rank : lost) rank->has_joined = false;
  if (!told.is_ok()) ranks_.fail(told);
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
  Ranks saying;
  size_t bytes = 0;
  Deadline limit = deadline_;
  for (RelayedRank& rank : ranks_.all()) {
    if (!rank.has_part || rank.round != round || rank.phase != phase || bytes > kMostAtOnce) continue;
    saying.push_back(&rank);
    bytes += rank.self.part().size();
    limit = limit.earlier(rank.limit);
  }
  const Status told = tell_server(saying, limit, [&](wire::Request& request) {
    wire::Contribution& step = *request.mutable_contribution();
    step.set_round(round);
    step.set_phase(phase);
    step.set_is_relayed(true);
  });
  for (RelayedRank* const rank : saying) {
    rank->has_part = false;
    rank->self.clear_part();
  }
  told.is_ok() ? await(round) : ranks_.fail(told);
}

void HostRelay::Impl::pass_leaves(bool (*picks)(const RelayedRank&)) {
  const Ranks leaving = ranks_.select(picks);
  if (leaving.empty()) return;
  (void)tell_server(leaving, Deadline::after(kRelayTellingTime),
                    [](wire::Request& request) { request.mutable_leave(); });
  for (RelayedRank* const rank : leaving) {
    rank->has_joined = false;
    rank->has_left = true;
  }
}

wire::Request HostRelay::Impl::await_of(uint64_t round) const {
  Deadline limit = deadline_;
  for (const RelayedRank& rank : ranks_.all())
    if (rank.waits && rank.round == round) limit = limit.earlier(rank.limit);
  wire::Request request = caller_.identity();
  request.mutable_await()->set_round(round);
  request.mutable_await()->set_timeout_ms(limit.left_ms());
  return request;
}

void HostRelay::Impl::await(uint64_t round) {
  const auto [place, is_new] = awaited_.try_emplace(round);
  if (is_new) place->second.start(caller_.stub(), await_of(round), Deadline(deadline_.when() + kRelayTellingTime));
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
      const Result<wire::Answer> again = caller_.exchange(await_of(round), deadline_);
      again ? deliver(round, *again) : ranks_.fail(again.error());
    }
    place = awaited_.erase(place);
  }
}

void HostRelay::Impl::deliver(uint64_t round, const wire::Answer& said) {
  if (const Status status = decode(said); !status.is_ok()) return ranks_.fail(status);
  const std::string text = said.SerializeAsString();
  for (RelayedRank& rank : ranks_.all()) {
    if (!rank.waits || rank.round != round) continue;
    RelayRanks::answer(rank, text);
    rank.answered = round + 1;
  }
}

// It ends when its rank has left, or the rendezvous has failed; why, the server says to who asks.
void HostRelay::Impl::look_at_presence() {
  if (!is_present_ || !presence_.has_ended()) return;
  is_present_ = false;
  const RelayedRank* const own = ranks_.find(own_);
  if (!ranks_.failure().is_ok() || own == nullptr || own->has_left) return;
  const Status status = tell_server({}, Deadline::after(kRelayTellingTime), [](wire::Request&) {});
  if (!status.is_ok()) ranks_.fail(status);
}

HostRelay::HostRelay(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
HostRelay::~HostRelay() {
  impl_->end();
  const SignalsBlocked blocked;  // as where gRPC is used
  impl_.reset();
}

Result<std::unique_ptr<HostRelay>> HostRelay::start(const UniqueId& id, const RelayPlace& place, Descriptor listener,
                                                    const wire::Request& self, Deadline deadline) {
  CCOM_TRY(check_start_resources());
  const SignalsBlocked blocked;
  auto impl = std::make_unique<Impl>(id, place, std::move(listener), self, deadline);
  CCOM_TRY(impl->start());
  return std::unique_ptr<HostRelay>(new HostRelay(std::move(impl)));
}

}  // namespace ccom
