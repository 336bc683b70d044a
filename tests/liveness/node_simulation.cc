// SPDX-License-Identifier: Apache-2.0
#include "node_simulation.h"

#include <linux/futex.h>

#include <algorithm>
#include <memory>
#include <random>
#include <set>
#include <vector>

#include "base/time.h"
#include "liveness/node_watch.h"

namespace ccom {
namespace {

class NodeSimulation {
 public:
  explicit NodeSimulation(uint64_t seed)
      : random_(seed),
        slots_(2 + below(7)),
        tells_(below(4) != 0),
        memory_(Board::bytes(slots_) / sizeof(Line) + 1),
        board_(*Board::over(std::as_writable_bytes(std::span(memory_)), slots_)) {
    board_.initialise();
    for (int slot = 0; slot < slots_; ++slot) arrive(slot);
  }

  History run() {
    for (int i = below(5); i > 0; --i) disturb();
    expect_quiet();
    break_some();
    run_ms(kDeadMs + kBeatMs + 4 * kCheckMs);
    expect_outcome();
    return {std::to_string(slots_) + (tells_ ? " ranks:" : " ranks in containers:") + history_, broken_};
  }

 private:
  static constexpr int64_t kDeadMs = 120;
  static constexpr int64_t kBeatMs = kDeadMs / 12;
  static constexpr int64_t kCheckMs = 5;
  static constexpr Rank kFirstRank = 100;
  enum class Health : uint8_t { Well, Starved, Stopped, Dying, Dead };

  struct alignas(64) Line {
    std::byte bytes[64]{};
  };
  struct Process {
    Health health = Health::Well;
    std::unique_ptr<NodeWatch> watch{};
    int64_t next_beat_ms = 0, next_check_ms = 0, dies_ms = 0;
  };

  int below(int end) { return static_cast<int>(random_() % static_cast<uint64_t>(end)); }
  Process& at(int slot) { return processes_[static_cast<size_t>(slot)]; }
  void note(const char* what, int64_t a, int64_t b = 0) {
    history_ += std::string(" ") + what + " " + std::to_string(a) + "/" + std::to_string(b);
  }
  void breaks(const std::string& what) {
    if (broken_.empty()) broken_ = what;
  }

  void arrive(int slot) {
    NodeWatch::Config config{.host = "host", .ranks = {}, .own_slot = slot, .process = 1 + static_cast<uint64_t>(slot)};
    for (int other = 0; other < slots_; ++other) config.ranks.push_back(kFirstRank + other);
    config.dead_ns = kDeadMs * kNsPerMs;
    config.state_of = [this](const BoardSlot& asked) { return state_of(static_cast<int>(&asked - &board_.slot(0))); };
    BoardSlot& own = board_.slot(slot);
    own.process.store(config.process);
    own.robust_futex.word.store(1);
    own.state.store(static_cast<uint32_t>(SlotState::Alive));
    processes_.push_back({.watch = std::make_unique<NodeWatch>(board_, config), .next_check_ms = below(kCheckMs)});
  }
  ThreadState state_of(int slot) {
    if (!tells_) return ThreadState::Unknown;
    switch (at(slot).health) {
      case Health::Well: return now_ms_ < at(slot).next_beat_ms ? ThreadState::Waiting : ThreadState::Runnable;
      case Health::Starved: return ThreadState::Runnable;
      case Health::Dying: return ThreadState::Ending;
      default: return ThreadState::Waiting;
    }
  }

  // ---- Time, the same for all ranks of a host.
  void run_ms(int64_t ms) {
    for (const int64_t end = now_ms_ + ms; now_ms_ < end; ++now_ms_) {
      for (int slot = 0; slot < slots_; ++slot) run(slot);
    }
  }
  void run(int slot) {
    Process& own = at(slot);
    if (own.health == Health::Dying && now_ms_ >= own.dies_ms) die(slot);
    const bool has_core = own.health == Health::Well || (own.health == Health::Starved && below(400) == 0);
    if (!has_core) return;
    if (now_ms_ >= own.next_beat_ms) {
      board_.slot(slot).beats.fetch_add(1);
      own.next_beat_ms = now_ms_ + kBeatMs;
    }
    if (now_ms_ < own.next_check_ms || !board_.error().is_ok()) return;
    own.next_check_ms = now_ms_ + kCheckMs;
    if (const auto found = own.watch->find_failures((1 + now_ms_) * kNsPerMs)) {
      board_.publish(slot, *found);
      named_at_ms_ = now_ms_;
    }
  }
  void die(int slot) {
    at(slot).health = Health::Dead;
    board_.slot(slot).robust_futex.word.fetch_or(FUTEX_OWNER_DIED);
  }

  // ---- What must be forgiven.
  void disturb() {
    const int slot = below(slots_);
    const int64_t short_ms = 1 + below(static_cast<int>(kDeadMs - kBeatMs - kCheckMs));
    switch (below(4)) {
      case 0: during(Health::Stopped, {slot}, short_ms); break;
      case 1: during(Health::Starved, {slot}, tells_ ? 1 + below(1000) : short_ms); break;
      case 2: during(Health::Starved, everybody(), tells_ ? 1 + below(1000) : short_ms); break;
      case 3: jump(); break;
    }
    run_ms(2 * kBeatMs);
  }
  std::vector<int> everybody() const {
    std::vector<int> all;
    for (int slot = 0; slot < slots_; ++slot) all.push_back(slot);
    return all;
  }
  void during(Health health, const std::vector<int>& slots, int64_t ms) {
    note(health == Health::Stopped ? "stop" : "starve", slots.size() > 1 ? -1 : slots[0], ms);
    for (const int slot : slots) at(slot).health = health;
    run_ms(ms);
    for (const int slot : slots) at(slot).health = Health::Well;
  }
  // The machine stood still.
  void jump() {
    const int64_t ms = 1 + below(below(2) == 0 ? static_cast<int>(kDeadMs) : 1'000'000);
    note("jump", ms);
    now_ms_ += ms;
  }

  // ---- What ends the job. At least one rank stays well.
  void break_some() {
    std::vector<int> order = everybody();
    std::ranges::shuffle(order, random_);
    const bool kills = below(2) == 0;
    const int victims = below(std::min(slots_, 4));
    if (victims > 0 && tells_ && below(3) == 0) {
      const int64_t ms = below(1000);
      note("starve", order[0], ms);
      at(order[0]).health = Health::Starved;
      run_ms(ms);
      expect_quiet();
    }
    for (int i = 0; i < victims; ++i) {
      Process& victim = at(order[static_cast<size_t>(i)]);
      victim.health = kills ? Health::Dying : Health::Stopped;
      victim.dies_ms = now_ms_ + below(30);
      culprits_.insert(kFirstRank + order[static_cast<size_t>(i)]);
      note(kills ? "kill" : "stop", order[static_cast<size_t>(i)], victim.dies_ms - now_ms_);
    }
    are_dead_ = kills;
    broken_at_ms_ = now_ms_;
    // A survivor may be starved at the same time.
    if (victims + 1 < slots_ && tells_ && below(2) == 0) {
      note("starve", order.back());
      at(order.back()).health = Health::Starved;
      has_rare_judge_ = true;
    }
  }

  // ---- Promises.
  void expect_quiet() {
    if (!board_.error().is_ok()) breaks("an error without a cause: " + board_.error().message());
  }
  void expect_outcome() {
    if (culprits_.empty()) return expect_quiet();
    if (board_.error().is_ok()) return breaks("no error");
    const std::vector<Rank> named = board_.error().peers();
    const std::vector<Rank> all(culprits_.begin(), culprits_.end());
    const auto is_culprit = [&](Rank rank) { return culprits_.contains(rank); };
    if (named.empty() || !std::ranges::all_of(named, is_culprit)) breaks("a wrong victim: " + board_.error().message());
    if (are_dead_ && tells_ && named != all) breaks("not all of the dead: " + board_.error().message());
    // The victim was last known to be alive a heartbeat or, if it was starved, a sixth of the time before it was
    // stopped; to one who looks rarely, half of the time.
    const int64_t sure_ms = kDeadMs / (has_rare_judge_ ? 2 : 1) - kDeadMs / 6 - kBeatMs - kCheckMs;
    const int64_t least_ms = are_dead_ ? 0 : sure_ms;
    if (named_at_ms_ - broken_at_ms_ < least_ms) breaks("too early: " + board_.error().message());
  }

  std::mt19937_64 random_;
  const int slots_;
  const bool tells_;  // the kernel; it does not of processes in other containers
  std::vector<Line> memory_;
  Board board_;
  std::vector<Process> processes_;
  int64_t now_ms_ = 0, broken_at_ms_ = 0, named_at_ms_ = 0;
  std::set<Rank> culprits_;
  bool are_dead_ = false, has_rare_judge_ = false;
  std::string history_, broken_;
};

}  // namespace

History simulate_node(uint64_t seed) { return NodeSimulation(seed).run(); }

}  // namespace ccom
