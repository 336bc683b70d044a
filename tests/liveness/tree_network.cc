// SPDX-License-Identifier: Apache-2.0
#include "tree_network.h"

#include <algorithm>

#include "liveness/straggler_watch.h"

namespace ccom {

TreeConfig tree_of(int hosts, int self) {
  TreeConfig config{.hosts = {}, .self = self, .dead_ns = kDeadMs * kMs};
  for (int h = 0; h < hosts; ++h) config.hosts.push_back({"host" + std::to_string(h), 2 * h, {2 * h, 2 * h + 1}});
  return config;
}

TreeNetwork::TreeNetwork(int hosts, uint64_t seed, const std::vector<HostClock>& clocks, int64_t settle_ms)
    : random_(seed) {
  TreeConfig config = tree_of(hosts, 0);
  config.settle_ns = settle_ms * kMs;
  config.decision_ns = 6 * settle_ms * kMs;
  for (int h = 0; h < hosts; ++h) {
    config.self = h;
    hosts_.push_back({.state = TreeState(config), .clock = clocks.empty() ? HostClock() : clocks[at(h)]});
    first_pipe_.push_back(pipes_.size());
    for (int other : tree_neighbours(h, hosts)) pipes_.push_back({.from = other, .to = h});
  }
  for (int h = 0; h < hosts; ++h)
    for (int other : tree_neighbours(h, hosts))
      drive(h, [&](auto& out) { hosts_[at(h)].state.attach(other, clock_of(hosts_[at(h)]), out); });
}

void TreeNetwork::run_ms(int64_t ms) {
  for (const int64_t end = now_ + ms * kMs; now_ < end; now_ += kMs) {
    for (Pipe& pipe : pipes_)
      if (!pipe.parcels.empty() && hosts_[at(pipe.to)].health == Health::Well) deliver(pipe);
    for (int h = 0; h < hosts(); ++h) {
      if (hosts_[at(h)].health != Health::Well) continue;
      tick(h);
      if (now_ / kMs % 5 == 0) poll_calls(h);
    }
  }
}

void TreeNetwork::kill(int host) {
  hosts_[at(host)].health = Health::Dead;
  for (int other : tree_neighbours(host, hosts())) end(pipe(host, other));
}

void TreeNetwork::leave(int host) {
  drive(host, [&](auto& out) { hosts_[at(host)].state.leave(0, out); });
  hosts_[at(host)].health = Health::Left;
  for (int other : tree_neighbours(host, hosts())) end(pipe(host, other));
}

void TreeNetwork::depart(int host, const Departure& departure) {
  drive(host, [&](auto& out) { hosts_[at(host)].state.depart(departure, out); });
  auto& known = hosts_[at(host)].departure;
  if (!known || departure < *known) known = departure;
}

void TreeNetwork::fail(int host, const Status& error) {
  Host& own = hosts_[at(host)];
  if (!own.error.is_ok()) return;  // as on the board: the first one counts
  own.error = error;
  drive(host, [&](auto& out) { own.state.fail(error, out); });
}

void TreeNetwork::heal(int a, int b) {
  for_link(a, b, [this](Pipe& pipe) {
    pipe.is_cut = false;
    for (Parcel& parcel : pipe.parcels) parcel.arrival_ns = std::max(parcel.arrival_ns, now_ + kMs);
  });
}

TreeNetwork::Pipe& TreeNetwork::pipe(int from, int to) {
  const bool from_parent = from < to;
  const int index = from_parent ? 0 : (to == 0 ? 0 : 1) + from - (kTreeDegree * to + 1);
  Pipe& found = pipes_[first_pipe_[at(to)] + at(index)];
  CCOM_ASSERT(found.from == from && found.to == to);
  return found;
}

template <typename Input>
void TreeNetwork::drive(int host, Input input) {
  TreeOutputs outputs;
  input(outputs);
  Host& own = hosts_[at(host)];
  for (TreeOutput& output : outputs) {
    switch (output.kind) {
      case TreeOutput::Kind::Send: post(host, output.host, std::move(output.message)); break;
      case TreeOutput::Kind::Suspect: ++suspicions_; break;
      case TreeOutput::Kind::Lose:
      case TreeOutput::Kind::Leave: break;
      case TreeOutput::Kind::Depart:
        own.departure = std::min(own.departure.value_or(output.message.departure), output.message.departure);
        break;
      case TreeOutput::Kind::Report: fail(host, output.message.error); break;
    }
  }
}

void TreeNetwork::post(int from, int to, std::optional<ControlMessage> message) {
  if (message && message->type == MessageType::Error) ++error_messages_;
  if (message && message->type == MessageType::Departure) ++departure_messages_;
  Pipe& link = pipe(from, to);
  link.parcels.push_back({arrival_over(link), std::move(message)});
}

int64_t TreeNetwork::arrival_over(const Pipe& pipe) {
  const int64_t arrival = now_ + (static_cast<int64_t>(random_() % 5 + 1) + pipe.slow_ms) * kMs;
  return pipe.parcels.empty() ? arrival : std::max(arrival, pipe.parcels.back().arrival_ns);
}

void TreeNetwork::deliver(Pipe& pipe) {
  TreeState& state = hosts_[at(pipe.to)].state;
  while (!pipe.is_cut && !pipe.parcels.empty() && pipe.parcels.front().arrival_ns <= now_) {
    const Parcel parcel = std::move(pipe.parcels.front());
    pipe.parcels.pop_front();
    drive(pipe.to, [&](auto& out) {
      if (parcel.message) {
        state.receive(pipe.from, *parcel.message, clock_of(hosts_[at(pipe.to)]), out);
      } else {
        state.lose(pipe.from, "closed by the peer", clock_of(hosts_[at(pipe.to)]), out);
      }
    });
  }
}

void TreeNetwork::tick(int host) {
  Host& own = hosts_[at(host)];
  const int64_t clock = clock_of(own);
  if (clock >= own.state.next_tick_ns()) drive(host, [&](auto& out) { own.state.tick(clock, out); });
}

void TreeNetwork::poll_calls(int host) {
  Host& own = hosts_[at(host)];
  if (!own.error.is_ok() || (!own.calls.is_asked_for && !own.state.straggler_poll().is_on())) return;
  drive(host, [&](auto& out) { own.state.poll_stragglers(own.calls, true, out); });
  if (const auto difference = difference_error(own.state.straggler_poll().result(), hosts_.size()))
    fail(host, *difference);
}

}  // namespace ccom
