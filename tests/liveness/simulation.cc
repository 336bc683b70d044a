// SPDX-License-Identifier: Apache-2.0
#include "simulation.h"

#include <algorithm>
#include <set>
#include <vector>

#include "tree_network.h"

namespace ccom {
namespace {

using Health = TreeNetwork::Health;

// Longer than a message from a leaf to the root takes.
constexpr int64_t kTogetherMs = 30;
// Noticing silence, making the error of it, and crossing the deepest tree over slow connections.
constexpr int64_t kOutcomeMs = 2 * kDeadMs + 6 * kTogetherMs + 160;
// What has to be forgiven: together less than the half of dead_ms that a host grants after its own clock has jumped.
constexpr int64_t kPauseMs = kDeadMs / 4;
constexpr int64_t kSlowMs = kDeadMs / 12;
constexpr int64_t kSpreadMs = 150;  // Monitor's time for a straggler poll

class Simulation {
 public:
  explicit Simulation(uint64_t seed)
      : random_(seed),
        clocks_(static_cast<size_t>(below(50) == 0 ? 74 + below(50) : 2 + below(below(2) == 0 ? 8 : 39))),
        network_(static_cast<int>(clocks_.size()), seed, any_clocks(), kTogetherMs) {}

  History run() {
    disturb(below(4));
    expect_quiet("after disturbances");
    const int kind = below(4);
    if (kind == 0) depart_some();
    if (kind == 1) call_alike_or_not();
    const bool is_quiet = culprits_.empty() && below(4) == 0;
    const int faults = is_quiet || !culprits_.empty() ? 0 : 1 + below(4);
    for (int i = 0; i < faults; ++i) break_something();
    network_.run_ms(kOutcomeMs);
    expect_outcome();
    resume_stopped();
    leave_in_any_order();
    note("suspicions/errors sent", network_.suspicions(), network_.error_messages());
    return {std::to_string(hosts()) + " hosts:" + history_, broken_};
  }

 private:
  int hosts() const { return network_.hosts(); }
  int below(int end) { return static_cast<int>(random_() % static_cast<uint64_t>(end)); }
  // Up to one percent fast or slow.
  const std::vector<TreeNetwork::HostClock>& any_clocks() {
    for (auto& clock : clocks_) clock = {static_cast<int64_t>(below(1 << 30)) * kMs, below(20'001) - 10'000};
    return clocks_;
  }
  int any_host() { return below(hosts()); }
  int neighbour_of(int host) {
    const auto all = tree_neighbours(host, hosts());
    return all[static_cast<size_t>(below(static_cast<int>(all.size())))];
  }
  void note(const char* what, int a, int64_t b = 0) {
    history_ += std::string(" ") + what + " " + std::to_string(a) + "/" + std::to_string(b);
  }
  void breaks(const std::string& what) {
    if (broken_.empty()) broken_ = what;
  }

  // ---- What must be forgiven, one after the other.
  void disturb(int times) {
    for (int i = 0; i < times; ++i) {
      const int a = any_host(), b = neighbour_of(a);
      const int ms = 1 + below(kPauseMs);
      network_.run_ms(below(40));
      switch (below(6)) {
        case 0: pause({a}, ms); break;
        case 1: pause(everybody(), 10 * ms); break;
        case 2: note("slow", a, b), network_.slow_down(a, b, below(kSlowMs)); break;
        case 3: cut_for(a, b, ms); break;
        case 4: jump(a); break;
        case 5: jump(a), pause({b}, ms); break;
      }
      network_.run_ms(kDeadMs / 2);  // so that no host is excused twice without a word from its neighbours between
    }
  }
  std::vector<int> everybody() const {
    std::vector<int> all(static_cast<size_t>(hosts()));
    for (int h = 0; h < hosts(); ++h) all[static_cast<size_t>(h)] = h;
    return all;
  }
  void pause(std::vector<int> which, int64_t ms) {
    std::erase_if(which, [this](int host) { return network_.health(host) != Health::Well; });
    if (which.empty()) return;
    note(which.size() > 1 ? "pause all of" : "pause", which.front(), ms);
    for (int h : which) network_.stop(h);
    network_.run_ms(ms);
    for (int h : which) network_.resume(h);
  }
  void cut_for(int a, int b, int64_t ms) {
    if (network_.is_cut(a, b)) return;
    note("cut", a, b), note("for ms", static_cast<int>(ms));
    network_.cut(a, b);
    network_.run_ms(ms);
    network_.heal(a, b);
  }
  void jump(int host) {
    const int64_t ms = 1 + below(below(2) == 0 ? kDeadMs : 1'000'000);
    note("jump", host, ms);
    network_.jump_clock(host, ms * kMs);
  }

  // ---- What ends the job.
  void break_something() {
    if (below(3) != 0) network_.run_ms(below(40));
    const int a = any_host(), b = neighbour_of(a);
    if (network_.health(a) != Health::Well) return;
    ++causes_;
    switch (below(6)) {
      case 0:
      case 1:
        note("kill", a), network_.kill(a);
        blame_host(a);
        gone_.insert(a);
        break;
      case 2:
        note("stop", a), network_.stop(a);
        blame_host(a);
        gone_.insert(a);
        break;
      case 3:
        note("cut", a, b), network_.cut(a, b);
        if (below(2) == 0) network_.run_ms(2 * kDeadMs), note("heal", a), network_.heal(a, b);
        blame_host(a), blame_host(b);
        ++causes_;  // each side names the other
        break;
      case 4:
        note("reset", a, b), network_.reset(a, b);
        blame_host(a), blame_host(b);
        ++causes_;
        break;
      case 5:
        note("abort", a), network_.fail(a, Status(Code::Aborted, "a rank aborts").with_peers({2 * a}));
        blame_host(a);
        break;
    }
    if (below(2) == 0) disturb(1);
  }
  void blame_host(int host) { culprits_.insert({2 * host, 2 * host + 1}); }

  // ---- What is told beside errors.
  void depart_some() {
    const int count = 1 + below(4);
    for (int i = 0; i < count; ++i) {
      const int host = any_host();
      const Departure departure{5 + static_cast<uint64_t>(below(4)), 2 * host + below(2)};
      note("depart", departure.rank, static_cast<int64_t>(departure.calls));
      departures_.insert(departure);
      network_.depart(host, departure);
      if (below(2) == 0) disturb(1);
    }
  }
  // The ranks are up to seven calls apart, and one of them may have made another call than all others.
  void call_alike_or_not() {
    const bool differ = below(2) == 0;
    const Rank odd = 2 * any_host();
    const uint64_t number = 100;
    note(differ ? "odd call of" : "calls like", odd);
    asker_ = any_host();
    for (int h = 0; h < hosts(); ++h) {
      const bool is_odd = differ && 2 * h == odd;
      StragglerReport calls{number + (is_odd ? 0 : static_cast<uint64_t>(below(8))), {2 * h}, h == asker_, {}};
      for (uint64_t n = number - 1; n <= calls.calls; ++n)
        calls.begun.push_back({{n, n, is_odd && n == number ? 2u : 1u}, 2 * h});
      slowest_ = merge(slowest_, calls);
      network_.set_calls(h, calls);
    }
    if (differ) odd_ = odd, culprits_.insert(odd), ++causes_;
    network_.run_ms(kSpreadMs);
    if (!differ) expect_known_calls();
  }

  // ---- Promises.
  void expect_quiet(const char* when) {
    for (int h = 0; h < hosts(); ++h)
      if (!network_.error_of(h).is_ok())
        breaks(std::string("error ") + when + " at host " + std::to_string(h) + ": " + network_.error_of(h).message());
  }
  void expect_known_calls() {
    const StragglerReport known = network_.known_calls(asker_);
    if (known.calls != slowest_.calls || known.ranks != slowest_.ranks)
      breaks("host " + std::to_string(asker_) + " does not know which ranks are behind");
  }
  void expect_outcome() {
    std::set<std::vector<Rank>> named;
    for (int h = 0; h < hosts(); ++h) {
      if (network_.health(h) != Health::Well) continue;
      expect_right_error(h);
      expect_right_departure(h);
      if (!network_.error_of(h).is_ok()) named.insert(network_.error_of(h).peers());
    }
    // The hosts at which a difference of calls shows at once may name different ranks beside the odd one.
    // Of several causes each part of a tree that has come apart names those that it knows.
    if (odd_ < 0 && static_cast<int>(named.size()) > std::max(0, 2 * causes_ - 1))
      breaks(std::to_string(named.size()) + " sets of ranks are named for " + std::to_string(causes_) + " causes");
  }
  void expect_right_error(int host) {
    const Status& error = network_.error_of(host);
    const std::string where = " at host " + std::to_string(host) + ": " + error.message();
    if (error.is_ok() != culprits_.empty()) breaks((error.is_ok() ? "no error" : "an error without a cause") + where);
    const auto is_culprit = [&](Rank rank) { return culprits_.contains(rank); };
    const auto& peers = error.peers();
    const bool is_right = odd_ >= 0 ? std::ranges::any_of(peers, is_culprit) : std::ranges::all_of(peers, is_culprit);
    if (!error.is_ok() && (peers.empty() || !is_right)) breaks("a wrong victim" + where);
  }
  void expect_right_departure(int host) {
    const auto& known = network_.departure_at(host);
    if (known && !departures_.contains(*known)) breaks("an invented departure at host " + std::to_string(host));
    const bool is_told = culprits_.empty() && !departures_.empty();
    if (is_told && (!known || known->calls != departures_.begin()->calls))
      breaks("the first departure is not known at host " + std::to_string(host));
  }
  // Unless all hosts were stopped, and go on together: that is a pause.
  void resume_stopped() {
    int resumed = 0;
    for (int host : gone_)
      if (network_.health(host) == Health::Stopped && below(2) == 0) ++resumed, network_.resume(host);
    network_.run_ms(resumed > 0 ? kOutcomeMs : 0);
    if (resumed == hosts()) return;
    for (int host : gone_)
      if (network_.health(host) == Health::Well) expect_right_error(host);
  }
  void leave_in_any_order() {
    std::vector<int> order = everybody();
    std::ranges::shuffle(order, random_);
    const bool was_quiet = culprits_.empty();
    for (int host : order) {
      if (network_.health(host) != Health::Well) continue;
      network_.run_ms(below(8));
      network_.leave(host);
    }
    if (was_quiet) expect_quiet("after leaving");
  }

  std::mt19937_64 random_;
  std::vector<TreeNetwork::HostClock> clocks_;
  TreeNetwork network_;
  std::set<Rank> culprits_;  // whom an error may name
  std::set<int> gone_;
  int causes_ = 0;
  std::set<Departure> departures_;
  Rank odd_ = -1;
  int asker_ = -1;
  StragglerReport slowest_;
  std::string history_, broken_;
};

}  // namespace

History simulate(uint64_t seed) { return Simulation(seed).run(); }

}  // namespace ccom
