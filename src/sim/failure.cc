// SPDX-License-Identifier: Apache-2.0
#include "sim/failure.h"

#include <algorithm>

#include "base/text.h"
#include "liveness/state.h"

namespace ccom {
namespace {

// The hosts' trees, and messages between them that take the network's latency.
class ControlWorld {
 public:
  ControlWorld(const Topology& topology, const DeathNotice& notice) : topology_(topology), wires_(topology) {
    const auto hosts = static_cast<int>(topology.hosts.size());
    notices_.resize(topology.hosts.size());
    for (Rank rank = topology.nranks(); rank-- > 0;) {
      const auto host = static_cast<size_t>(topology.ranks[static_cast<size_t>(rank)].host);
      members_.resize(topology.hosts.size(), -1);
      members_[host] = rank;
    }
    for (int host = 0; host < hosts; ++host) {
      TreeConfig config{.hosts = std::vector<TreeHost>(topology.hosts.size()),
                        .self = host,
                        .dead_ns = notice.dead_ns,
                        .settle_ns = kSettleNs,
                        .decision_ns = kDecisionNs};
      std::vector<int> known = tree_neighbours(host, hosts);
      known.push_back(host);
      for (const int other : known) config.hosts[static_cast<size_t>(other)] = tree_host(other);
      trees_.emplace_back(std::move(config));
    }
    for (int host = 0; host < hosts; ++host) {
      for (const int other : tree_neighbours(host, hosts))
        act(host, [&](TreeOutputs& out) { tree(host).attach(other, 0, out); });
    }
  }

  Rank member(int host) const { return members_[static_cast<size_t>(host)]; }

  // The host's own ranks have found out.
  void find_out(int host, double at_ns, const Status& error) {
    now_ = picoseconds(at_ns);
    act(host, [&](TreeOutputs& out) { tree(host).find_lost(error, at(), out); });
  }

  // Every neighbour sees its connection to the host's member end.
  void cut(int host, double at_ns) {
    now_ = picoseconds(at_ns);
    for (const int other : tree_neighbours(host, static_cast<int>(trees_.size()))) {
      act(other, [&](TreeOutputs& out) { tree(other).lose(host, "end of file", at(), out); });
    }
  }

  std::vector<HostNotice> run() {
    while (!queue_.empty()) {
      const ClockEvent event = queue_.take();
      now_ = event.time;
      if (event.kind == kTick) {
        const auto host = static_cast<int>(event.subject);
        if (tree(host).is_settling()) act(host, [&](TreeOutputs& out) { tree(host).tick(at(), out); });
        continue;
      }
      const Letter letter = letters_[event.subject];
      act(letter.to, [&](TreeOutputs& out) { tree(letter.to).receive(letter.from, letter.message, at(), out); });
    }
    return std::move(notices_);
  }

 private:
  static constexpr uint32_t kArrival = 0, kTick = 1;
  struct Letter {
    int from = 0, to = 0;
    ControlMessage message;
  };

  int64_t at() const { return static_cast<int64_t>(now_ / 1000); }
  TreeState& tree(int host) { return trees_[static_cast<size_t>(host)]; }

  TreeHost tree_host(int host) const {
    return {.name = topology_.hosts[static_cast<size_t>(host)].name,
            .member = member(host),
            .ranks = topology_.ranks_of(host)};
  }

  template <typename Fn>
  void act(int host, Fn fn) {
    TreeOutputs outputs;
    fn(outputs);
    for (size_t i = 0; i < outputs.size(); ++i) {
      TreeOutput output = std::move(outputs[i]);
      if (output.kind == TreeOutput::Kind::Report && !tree(host).failed()) {
        tree(host).fail(output.message.error, outputs);
        notices_[static_cast<size_t>(host)] = {static_cast<double>(now_) / 1e3, std::move(output.message.error)};
      } else if (output.kind == TreeOutput::Kind::Send) {
        letters_.push_back({host, output.host, std::move(output.message)});
        queue_.add({now_ + latency(host, output.host), kArrival, static_cast<uint32_t>(letters_.size() - 1)});
      }
    }
    if (tree(host).is_settling())
      queue_.add({now_ + picoseconds(static_cast<double>(kSettleNs)), kTick, static_cast<uint32_t>(host)});
  }

  SimTime latency(int from, int to) const { return picoseconds(wires_.latency_ns(member(from), member(to))); }

  const Topology& topology_;
  Wires wires_;
  std::vector<Rank> members_;  // by host
  std::vector<TreeState> trees_;
  std::vector<HostNotice> notices_;
  std::vector<Letter> letters_;
  EventQueue queue_;
  SimTime now_ = 0;
};

}  // namespace

std::vector<HostNotice> survive(const Topology& topology, const Faults::Death& death, const DeathNotice& notice) {
  ControlWorld world(topology, notice);
  const int host = topology.ranks[static_cast<size_t>(death.rank)].host;
  const bool has_mates = topology.ranks_of(host).size() > 1;
  const Status error = ccom::error(ErrorKey::RankDied, "rank %d on host %s died", death.rank,
                                   topology.hosts[static_cast<size_t>(host)].name.c_str())
                           .with_peers({death.rank});
  if (has_mates) {
    world.find_out(host, death.at_ns + notice.to_mates_ns, error);
  } else {
    world.cut(host, death.at_ns + notice.to_connections_ns);
  }
  return world.run();
}

std::string to_text(const Topology& topology, const Faults::Death& death, const std::vector<HostNotice>& notices,
                    const SimReport& report) {
  double first = 0, last = 0;
  size_t told = 0, hosts = 0;
  const Status* error = nullptr;
  for (size_t host = 0; host < notices.size(); ++host) {
    if (notices[host].time_ns < 0) continue;
    first = hosts == 0 ? notices[host].time_ns : std::min(first, notices[host].time_ns);
    last = std::max(last, notices[host].time_ns);
    told += topology.ranks_of(static_cast<int>(host)).size();
    ++hosts;
    error = &notices[host].error;
  }
  const Place& place = topology.ranks[static_cast<size_t>(death.rank)];
  if (notices[static_cast<size_t>(place.host)].time_ns >= 0) --told;
  const auto done = std::ranges::count_if(report.rank_done_ns, [](double ns) { return ns >= 0; });
  return printed(
      "  rank %d dies at %.1f us: %zd of %zu ranks finish; %zu survivors on %zu hosts learn of it %.3f to %.3f ms "
      "after the death: %s\n",
      death.rank, death.at_ns / 1e3, static_cast<ssize_t>(done), report.rank_done_ns.size(), told, hosts,
      (first - death.at_ns) / 1e6, (last - death.at_ns) / 1e6,
      error != nullptr ? error->message().c_str() : "nobody is left");
}

}  // namespace ccom
