// SPDX-License-Identifier: Apache-2.0
#include "planner/fabric_search.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <numeric>

#include "algorithms/cycles.h"
#include "algorithms/streams.h"
#include "planner/search.h"

namespace ccom {
namespace {

bool all_powers_of_two(const std::vector<int>& dims) {
  return !dims.empty() &&
         std::ranges::all_of(dims, [](int d) { return std::has_single_bit(static_cast<uint32_t>(d)); });
}

std::vector<std::vector<uint32_t>> cycles_of_devices(const MachineView& view) {
  if (view.dims.empty() || view.devices < 3) return {};
  return hamiltonian_cycles(view.dims);
}

class FabricSearch {
 public:
  FabricSearch(const MachineView& view, Collective collective)
      : view_(view), by_owner_(collective != Collective::AllReduce) {}

  std::vector<MessageAlgorithm> run() {
    add_by_devices();
    if (!by_owner_) add_latency();
    return std::move(found_);
  }

 private:
  void add_staged(const std::string& name, Staged shape) {
    found_.push_back({name, MessageAlgorithm::Kind::Staged, std::move(shape)});
  }

  // Patterns for the level between the devices of a host, with their names.
  std::vector<std::pair<std::string, Level>> device_levels() const {
    std::vector<std::pair<std::string, Level>> levels;
    const auto level = [&](Pattern pattern) {
      return Level{.pattern = pattern, .owners = view_.devices, .groups = view_.device_groups()};
    };
    if (view_.dims.size() >= 2 || (view_.dims.size() == 1 && view_.devices > 2)) {
      std::vector<double> speeds;
      for (const LinkSpeed& speed : view_.dim_speeds) speeds.push_back(speed.bytes_per_second);
      Level torus = level(Pattern::Torus);
      torus.dims = view_.dims;
      torus.streams = balanced_streams(view_.dims, speeds);
      Level two_way = torus;
      two_way.streams = joined_streams(torus.streams);
      levels.emplace_back("torus", std::move(torus));
      const bool halves_steps = std::ranges::max(view_.dims) > 2;
      if (halves_steps) levels.emplace_back("torus_two_way", std::move(two_way));
      const bool near = std::ranges::all_of(view_.dims, [](int d) { return d <= 4; });
      if (all_powers_of_two(view_.dims) && (near || view_.fabric->routed)) {
        Level swing = level(Pattern::Swing);
        swing.dims = view_.dims;
        swing.streams = balanced_streams(view_.dims, speeds, Pattern::Swing);
        levels.emplace_back("swing", std::move(swing));
      }
      if (auto cycles = cycles_of_devices(view_); view_.dims.size() >= 2 && !cycles.empty()) {
        Level rings = level(Pattern::Rings);
        rings.dims = view_.dims;
        rings.cycles = std::move(cycles);
        levels.emplace_back("rings", std::move(rings));
      }
    }
    if (view_.all_linked) {
      levels.emplace_back("direct", level(Pattern::Direct));
      if (view_.devices > 4) levels.emplace_back("circulant", level(Pattern::Circulant));
    }
    return levels;
  }

  Level core_level() const {
    return {.pattern = Pattern::Direct, .owners = view_.cores, .groups = view_.core_groups()};
  }
  Level across(Pattern pattern) const {
    return {.pattern = pattern, .owners = view_.hosts, .groups = view_.host_groups()};
  }

  // Factors of the number of hosts, of at most `most`; none if there are no such ones, or two hosts.
  std::vector<int> radices_across(int most) const {
    if (view_.hosts <= 2) return {};
    if (view_.hosts <= most) return {view_.hosts};
    std::vector<int> radices = choose_radices(view_.hosts, most);
    const int joined = std::accumulate(radices.begin(), radices.end(), 1, std::multiplies<>());
    if (joined != view_.hosts) radices.clear();
    return radices;
  }

  // Between hosts: in halves, round a ring, or directly among as many hosts at a time as a radix says.
  std::vector<std::pair<std::string, std::vector<Level>>> levels_across() const {
    std::vector<std::pair<std::string, std::vector<Level>>> ways{{"", {across(Pattern::Circulant)}},
                                                                 {"_ring", {across(Pattern::Ring)}}};
    // Smaller radices take more rounds and fewer messages, each of which a card is busy for.
    std::vector<int> larger;
    for (const int most : {kMostDirect, kMostDirect / 2, kMostDirect / 4}) {
      std::vector<int> radices = radices_across(most);
      if (radices.empty() || radices == larger) continue;
      ways.emplace_back("_radix" + (most < kMostDirect ? std::to_string(most) : ""),
                        dimension_levels(Pattern::Direct, radices, view_.host_groups()));
      larger = std::move(radices);
    }
    // Near hosts first pays where racks share uplinks.
    if (view_.has_racks && std::has_single_bit(static_cast<uint32_t>(view_.hosts)))
      ways.push_back({"_bine", {across(Pattern::Bine)}});
    return ways;
  }

  // Cores, devices, hosts.
  void add_by_devices() {
    std::vector<std::pair<std::string, Level>> devices = device_levels();
    if (view_.devices == 1) devices.emplace_back("direct", Level{});
    for (auto& [name, level] : devices) {
      if (view_.devices > 1 && view_.hosts == 1 && view_.cores == 1 && (name == "direct" || name == "circulant"))
        continue;
      if (view_.devices == 1 && view_.hosts == 1) continue;
      Staged shape;
      if (view_.cores > 1) shape.levels.push_back(core_level());
      if (view_.devices > 1) shape.levels.push_back(level);
      if (view_.hosts == 1) {
        add_staged(name == "direct" || name == "circulant" ? "cores_" + name : name, std::move(shape));
        continue;
      }
      const std::string prefix = "hierarchical" + (&name == &devices.front().first ? "" : "_" + name);
      for (const auto& [suffix, levels] : levels_across()) {
        Staged whole = shape;
        whole.levels.insert(whole.levels.end(), levels.begin(), levels.end());
        add_staged(prefix + suffix, std::move(whole));
      }
      if (by_owner_) continue;
      shape.core.push_back(across(Pattern::RecursiveDoubling));
      add_staged(prefix + "_doubling", shape);
      if (!view_.has_racks) continue;
      shape.core[0].pattern = Pattern::BineLatency;
      add_staged(prefix + "_bine_latency", std::move(shape));
    }
  }

  // Between hosts in as few rounds as the ranks of a host can share out.
  void add_mixed_radix() {
    MessageAlgorithm algorithm{"mixed_radix", MessageAlgorithm::Kind::Radix};
    std::vector<int>& dims = algorithm.radix.dims;
    dims = view_.dims.empty() || view_.devices == 1 ? std::vector{view_.devices} : view_.dims;
    // Where all are neighbours halves are exchanged in pairs.
    while (view_.all_linked && dims.back() % 2 == 0 && dims.back() > 2) {
      dims.back() /= 2;
      dims.push_back(2);
    }
    dims.push_back(view_.cores);
    for (const auto& host : view_.ranks) {
      std::vector<Rank>& ranks = algorithm.radix.hosts.emplace_back();
      for (const auto& device : host) ranks.insert(ranks.end(), device.begin(), device.end());
    }
    algorithm.radix.radices = choose_radices(view_.hosts, view_.most_ranks);
    if (!algorithm.radix.radices.empty()) found_.push_back(std::move(algorithm));
  }

  // Everything to everybody in as few steps as there can be, for short vectors.
  void add_latency() {
    if (view_.hosts > 1) add_mixed_radix();
    if (view_.hosts > 1 || view_.devices < 2 || !all_powers_of_two(view_.dims)) return;
    const bool near = std::ranges::all_of(view_.dims, [](int d) { return d <= 4; });
    if (!near && !view_.fabric->routed) return;
    Staged shape;
    if (view_.cores > 1) shape.levels.push_back(core_level());
    Level core{.pattern = Pattern::SwingLatency, .owners = view_.devices, .groups = view_.device_groups()};
    core.dims = view_.dims;
    shape.core.push_back(std::move(core));
    add_staged("swing_latency", std::move(shape));
  }

  const MachineView& view_;
  bool by_owner_;
  std::vector<MessageAlgorithm> found_;
};

}  // namespace

std::vector<MessageAlgorithm> fabric_algorithms(const MachineView& view, Collective collective) {
  return view.nranks > 1 ? FabricSearch(view, collective).run() : std::vector<MessageAlgorithm>();
}

std::optional<Staged> exchange_levels(const MachineView& view) {
  if (!view.follows_fabric || view.nranks < 2) return std::nullopt;
  Staged shape;
  if (view.cores > 1) shape.levels.push_back({.owners = view.cores, .groups = view.core_groups()});
  if (view.devices > 1) {
    Level level{.owners = view.devices, .groups = view.device_groups()};
    if (!view.dims.empty() && !view.all_linked) {
      level.pattern = Pattern::Torus;
      level.dims = view.dims;
    } else if (!view.all_linked) {
      return std::nullopt;
    }
    shape.levels.push_back(std::move(level));
  }
  if (view.hosts > 1) shape.levels.push_back({.owners = view.hosts, .groups = view.host_groups()});
  return shape;
}

std::vector<Rank> ring_order(const MachineView& view) {
  std::vector<uint32_t> devices(static_cast<size_t>(view.devices));
  std::iota(devices.begin(), devices.end(), 0);
  const auto cycles = cycles_of_devices(view);
  const bool closed = view.hosts > 1 || view.devices <= 2 || view.all_linked;
  if (!cycles.empty()) {
    devices = cycles[0];
  } else if (!view.in_line || !closed) {
    return {};
  }
  std::vector<Rank> order;
  for (int host = 0; host < view.hosts; ++host) {
    for (const uint32_t device : devices) {
      for (int core = 0; core < view.cores; ++core) order.push_back(view.rank(host, static_cast<int>(device), core));
    }
  }
  return order;
}

bool gains_by_windows(const MachineView& view, const Staged& shape) {
  if (shape.levels.size() != 1) return shape.levels.size() > 1;
  const auto differs = [&](size_t d) {
    return view.dims[d] != view.dims[0] || view.dim_speeds[d].bytes_per_second != view.dim_speeds[0].bytes_per_second;
  };
  bool is_uneven =
      view.fabric != nullptr && view.fabric->costs.reduce_bytes_per_second > 0;  // sums and messages at once
  for (size_t d = 1; d < view.dims.size(); ++d) is_uneven |= differs(d);
  // Both ways at once a rank has few messages under way, whose latency others hide.
  const bool is_two_way = std::ranges::count(streams_of(shape.levels[0]), 0, &TorusStream::direction) > 0;
  return (is_uneven || is_two_way) && torus_laps(shape.levels[0]) > 1;
}

namespace {

// How often data may be cut to flow through an algorithm, windows of a staged one, chunks of a tree: 1, 2, 4, ...
std::vector<int> possible_counts(const MachineView& view, const MessageAlgorithm& algorithm, const Settings& settings,
                                 const Question& question) {
  if (algorithm.kind == MessageAlgorithm::Kind::Staged) {
    Staged pipelined = algorithm.staged;
    pipelined.windows = 2;
    if (!gains_by_windows(view, pipelined) || channels_of(pipelined) > settings.most_channels) return {1};
    return {1, 2, 4, 8, 16};
  }
  if (algorithm.kind == MessageAlgorithm::Kind::Tree && algorithm.tree.by_position) return {1, 2, 4, 8, 16};
  if (is_per_rank(question.collective) || algorithm.kind == MessageAlgorithm::Kind::Radix) return {1};
  // Few trees may have more, so that the first ones of long data come sooner. Not still more: where cores share ports
  // prices are too low then (trn3-us-gen1).
  constexpr size_t kMostBlocks = 4096, kLeastBytes = size_t{16} << 10;
  const size_t most = std::min(kMostBlocks, question.bytes / kLeastBytes) / std::max<size_t>(algorithm.trees.size(), 1);
  std::vector<int> counts{1, 2, 4, 8, 16, 32, 64};
  while (counts.back() < 256 && 2 * static_cast<size_t>(counts.back()) <= most) counts.push_back(2 * counts.back());
  return counts;
}

// Runs of positions are units of many ranks: with levels or streams, which share units out, or halves that are no runs
// of ranks. Bits of random rounding follow from places in the user's buffer, of which such plans know nothing.
bool may_go_by_position(const MessageAlgorithm& algorithm, const Question& question) {
  const bool by_owner =
      question.collective == Collective::AllGather || question.collective == Collective::ReduceScatter;
  if (algorithm.kind != MessageAlgorithm::Kind::Staged || !by_owner || question.is_v || question.rounds_once)
    return false;
  const std::vector<Level>& levels = algorithm.staged.levels;
  if (levels.size() != 1) return levels.size() > 1;
  return stream_count(levels[0]) > 1 || levels[0].pattern == Pattern::Swing || levels[0].pattern == Pattern::Bine;
}

}  // namespace

void set_count(MessageAlgorithm& algorithm, int count) {
  if (algorithm.kind == MessageAlgorithm::Kind::Staged) algorithm.staged.windows = count;
  if (algorithm.kind == MessageAlgorithm::Kind::Tree) algorithm.tree.chunks = count;
  for (Tree& tree : algorithm.trees) tree.chunks = count;
}

Price cheapest_form(const MachineView& view, const Settings& settings, const Question& question,
                    const MessagePricer& pricer, MessageAlgorithm& algorithm, std::string& note) {
  const bool goes_by_position = may_go_by_position(algorithm, question);
  if (view.fabric == nullptr && !goes_by_position) return pricer.price(algorithm);
  std::vector<int> tried{1};
  if (view.fabric != nullptr) tried = possible_counts(view, algorithm, settings, question);
  std::optional<Price> best;
  int best_count = 1;
  bool best_by_position = false;
  for (const bool by_position : {false, true}) {
    if (by_position && !goes_by_position) continue;
    algorithm.staged.by_position = by_position;
    for (const int count : tried) {
      set_count(algorithm, count);
      const Price priced = pricer.price(algorithm);
      // At the same price by position, with fewer messages.
      const bool is_better = !best || priced.time_ns < best->time_ns ||
                             (by_position && !best_by_position && priced.time_ns == best->time_ns);
      if (!is_better) continue;
      best = priced;
      best_count = count;
      best_by_position = by_position;
    }
  }
  algorithm.staged.by_position = best_by_position;
  set_count(algorithm, best_count);
  pricer.order_sends(algorithm);
  if (best_count > 1) {
    note = std::to_string(best_count) + (algorithm.kind == MessageAlgorithm::Kind::Staged ? " windows" : " chunks");
  }
  if (best_by_position) note += note.empty() ? "by position" : ", by position";
  return *best;
}

}  // namespace ccom
