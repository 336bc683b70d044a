// SPDX-License-Identifier: Apache-2.0
//
// The control tree's production state machines (TreeState) on a simulated network in virtual time.
//
// Hosts are joined by FIFO connections, as TCP gives: no message is lost, repeated or overtaken by a later one of the
// same connection; between connections every order occurs. Each host reads a clock of its own: offset, rate and jumps
// forward (CLOCK_MONOTONIC never goes back). Hosts are killed, stopped, resumed and leave; connections are slow, cut,
// healed (what was sent meanwhile arrives then) and reset. Time moves in steps of a millisecond.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <random>
#include <vector>

#include "liveness/state.h"

namespace ccom {

inline constexpr int64_t kMs = 1'000'000;
inline constexpr int64_t kDeadMs = 120;

// Host h has ranks 2h and 2h + 1; 2h is its member.
TreeConfig tree_of(int hosts, int self);

class TreeNetwork {
 public:
  enum class Health { Well, Stopped, Dead, Left };

  // A host's clock begins there and gains so many millionths of the true time.
  struct HostClock {
    int64_t offset_ns = 0, ppm = 0;
  };
  // clocks: of each host, or none. settle_ms: see TreeConfig.
  TreeNetwork(int hosts, uint64_t seed, const std::vector<HostClock>& clocks = {}, int64_t settle_ms = 0);
  void run_ms(int64_t ms);

  void jump_clock(int host, int64_t forward_ns) { hosts_[at(host)].clock.offset_ns += forward_ns; }

  void kill(int host);
  void stop(int host) { hosts_[at(host)].health = Health::Stopped; }
  void resume(int host) { hosts_[at(host)].health = Health::Well; }
  void leave(int host);
  // A rank of that host leaves, the host's member stays.
  void depart(int host, const Departure& departure);
  // That host detects an error.
  void fail(int host, const Status& error);
  // What its ranks have called, and whether one asks for what the others did; looked at every 5 ms while anybody asks,
  // as by the liveness thread. A difference becomes the host's error.
  void set_calls(int host, StragglerReport calls) { hosts_[at(host)].calls = std::move(calls); }

  // Of the connection between two neighbours.
  void cut(int a, int b) {
    for_link(a, b, [](Pipe& pipe) { pipe.is_cut = true; });
  }
  void heal(int a, int b);
  bool is_cut(int a, int b) { return pipe(a, b).is_cut; }
  void slow_down(int a, int b, int64_t ms) {
    for_link(a, b, [ms](Pipe& pipe) { pipe.slow_ms = ms; });
  }
  void reset(int a, int b) {
    for_link(a, b, [this](Pipe& pipe) { end(pipe); });
  }

  int hosts() const { return static_cast<int>(hosts_.size()); }
  Health health(int host) const { return hosts_[at(host)].health; }
  const Status& error_of(int host) const { return hosts_[at(host)].error; }
  const std::optional<Departure>& departure_at(int host) const { return hosts_[at(host)].departure; }
  StragglerReport known_calls(int host) const { return hosts_[at(host)].state.straggler_poll().result(); }
  int suspicions() const { return suspicions_; }
  int error_messages() const { return error_messages_; }
  int departure_messages() const { return departure_messages_; }

 private:
  struct Host {
    TreeState state;
    HostClock clock{};
    Health health = Health::Well;
    Status error{};
    std::optional<Departure> departure{};
    StragglerReport calls{};
  };
  struct Parcel {
    int64_t arrival_ns;
    std::optional<ControlMessage> message;  // none: the connection ends
  };
  struct Pipe {
    int from, to;
    std::deque<Parcel> parcels{};
    bool is_cut = false;
    int64_t slow_ms = 0;
  };

  static size_t at(int host) { return static_cast<size_t>(host); }
  int64_t clock_of(const Host& host) const { return host.clock.offset_ns + now_ + now_ / 1'000'000 * host.clock.ppm; }
  Pipe& pipe(int from, int to);
  template <typename Action>
  void for_link(int a, int b, Action action) {
    action(pipe(a, b));
    action(pipe(b, a));
  }
  template <typename Input>
  void drive(int host, Input input);
  void post(int from, int to, std::optional<ControlMessage> message);
  void end(Pipe& pipe) { pipe.parcels.push_back({arrival_over(pipe), std::nullopt}); }
  int64_t arrival_over(const Pipe& pipe);
  void deliver(Pipe& pipe);
  void tick(int host);
  void poll_calls(int host);

  std::mt19937_64 random_;
  int64_t now_ = 0;
  std::vector<Host> hosts_;
  std::vector<Pipe> pipes_;  // to a host from its parent, then its children; hosts in order
  std::vector<size_t> first_pipe_;
  int suspicions_ = 0;
  int error_messages_ = 0;
  int departure_messages_ = 0;
};

}  // namespace ccom
