// SPDX-License-Identifier: Apache-2.0
//
// The simulator against the closed forms of algorithms/cost.h: every algorithm where none of its messages shares a wire
// with another at the same time, from 1 KiB to 64 MiB, is within 1 % of
//
//   steps (latency + post) + (streams - 1) post + bytes / bandwidth
//
// A rank posts its streams one after another at the start; later their messages come as the ones before them went.
// Posting costs nothing here where steps have more messages than one per stream (direct, one_shot, circulant), and on
// tori of three dimensions, where streams that started a little apart meet when they change dimensions.
//
// Not here, because messages do share wires: folding for numbers of ranks that are no powers of two, circulant rounds
// besides a reduce-scatter over a power of two (a part that is there early goes before one that others wait for), Swing
// on dimensions above four, both directions of streams on dimensions of two.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "algorithms/collectives.h"
#include "algorithms/cost.h"
#include "algorithms/cycles.h"
#include "algorithms/streams.h"
#include "sim/simulator.h"

namespace ccom {
namespace {

constexpr double kLatencyNs = 1500, kPostNs = 100, kBytesPerSecond = 50e9;

struct Form {
  std::string fabric;
  std::string name;
  Collective collective = Collective::AllReduce;
  Staged shape;
  Cost (*cost)(const Staged&, double) = nullptr;  // of the whole call
  bool posts = true;
};

double members(const Staged& shape) {
  return static_cast<double>((shape.levels.empty() ? shape.core : shape.levels)[0].groups[0].size());
}

const Level& level_of(const Staged& shape) { return (shape.levels.empty() ? shape.core : shape.levels)[0]; }

Level grid_level(Pattern pattern, const std::vector<int>& dims) {
  Level level = flat_level(pattern, std::accumulate(dims.begin(), dims.end(), 1, std::multiplies{}));
  level.dims = dims;
  if (pattern == Pattern::Rings) level.cycles = hamiltonian_cycles(dims);
  if (dims[0] == 2 && pattern != Pattern::RecursiveDoubling) {
    level.streams = default_streams(dims);
    std::erase_if(level.streams, [](const TorusStream& stream) { return stream.direction < 0; });
  }
  return level;
}

// Reduce-scatter, allgather and both on one level, whose halves cost `down` and `up`.
void add_halves(std::vector<Form>& forms, const std::string& fabric, const std::string& name, const Level& level,
                Cost (*down)(const Staged&, double), Cost (*up)(const Staged&, double),
                Cost (*both)(const Staged&, double), bool posts) {
  forms.push_back({fabric, name, Collective::ReduceScatter, {{level}, {}}, down, posts});
  forms.push_back({fabric, name, Collective::AllGather, {{level}, {}}, up, posts});
  forms.push_back({fabric, name, Collective::AllReduce, {{level}, {}}, both, posts});
}

void add_flat(std::vector<Form>& forms) {
  for (const int p : {2, 3, 5, 8, 16}) {
    const auto ring_down = [](const Staged& s, double n) { return ring_reduce_scatter_cost(members(s), n); };
    const auto ring_up = [](const Staged& s, double n) { return ring_allgather_cost(members(s), n); };
    const auto ring = [](const Staged& s, double n) {
      return ring_reduce_scatter_cost(members(s), n) + ring_allgather_cost(members(s), n);
    };
    const auto direct_down = [](const Staged& s, double n) { return direct_reduce_scatter_cost(members(s), n); };
    const auto direct_up = [](const Staged& s, double n) { return direct_allgather_cost(members(s), n); };
    const auto direct = [](const Staged& s, double n) {
      return direct_reduce_scatter_cost(members(s), n) + direct_allgather_cost(members(s), n);
    };
    const std::string one_switch = "switch:" + std::to_string(p), circle = "ring:" + std::to_string(p);
    for (const std::string& fabric : {one_switch, circle}) {
      add_halves(forms, fabric, "ring", flat_level(Pattern::Ring, p), ring_down, ring_up, ring, true);
    }
    add_halves(forms, one_switch, "direct", flat_level(Pattern::Direct, p), direct_down, direct_up, direct, false);
    const auto one_shot = [](const Staged& s, double n) { return one_shot_cost(members(s), n); };
    forms.push_back(
        {one_switch, "one_shot", Collective::AllReduce, {{}, {flat_level(Pattern::OneShot, p)}}, one_shot, false});
  }
}

void add_powers_of_two(std::vector<Form>& forms) {
  const auto circulant = [](const Staged& s, double n) { return circulant_reduce_scatter_cost(members(s), n); };
  const auto doubling = [](const Staged& s, double n) { return recursive_doubling_cost(members(s), n); };
  for (const int p : {2, 4, 8, 16}) {
    const std::string fabric = "switch:" + std::to_string(p);
    const Level level = flat_level(Pattern::Circulant, p), core = flat_level(Pattern::RecursiveDoubling, p);
    forms.push_back({fabric, "circulant", Collective::ReduceScatter, {{level}, {}}, circulant, false});
    forms.push_back({fabric, "recursive_doubling", Collective::AllReduce, {{}, {core}}, doubling});
  }
}

std::string torus_name(const std::vector<int>& dims) {
  std::string name = "torus:";
  for (const int size : dims) name += (name.back() == ':' ? "" : "x") + std::to_string(size);
  return name;
}

void add_tori(std::vector<Form>& forms) {
  for (const std::vector<int>& dims :
       std::vector<std::vector<int>>{{3, 3}, {4, 4}, {5, 5}, {8, 8}, {2, 2, 2}, {3, 3, 3}, {4, 4, 4}}) {
    const std::string fabric = torus_name(dims);
    const bool posts = dims.size() < 3;
    const auto torus = [](const Staged& s, double n) {
      return torus_reduce_scatter_cost(level_of(s), n) + torus_allgather_cost(level_of(s), n);
    };
    forms.push_back({fabric, "torus", Collective::AllReduce, {{grid_level(Pattern::Torus, dims)}, {}}, torus, posts});
    const auto rings = [](const Staged& s, double n) {
      return rings_reduce_scatter_cost(level_of(s), n) + rings_allgather_cost(level_of(s), n);
    };
    if (dims.size() == 2 || dims[0] == 4) {
      forms.push_back({fabric, "rings", Collective::AllReduce, {{grid_level(Pattern::Rings, dims)}, {}}, rings, posts});
    }
    if (dims[0] != 2 && dims[0] != 4) continue;  // Swing goes one hop at a time up to four
    const auto swing = [](const Staged& s, double n) {
      return swing_reduce_scatter_cost(level_of(s), n) + swing_allgather_cost(level_of(s), n);
    };
    const auto latency = [](const Staged& s, double n) { return swing_latency_cost(level_of(s), n); };
    forms.push_back({fabric, "swing", Collective::AllReduce, {{grid_level(Pattern::Swing, dims)}, {}}, swing, posts});
    forms.push_back({fabric,
                     "swing_latency",
                     Collective::AllReduce,
                     {{}, {grid_level(Pattern::SwingLatency, dims)}},
                     latency,
                     posts});
  }
  const auto doubling = [](const Staged& s, double n) { return recursive_doubling_cost(level_of(s), n); };
  const Level cube = grid_level(Pattern::RecursiveDoubling, {2, 2, 2});
  forms.push_back({"torus:2x2x2", "recursive_doubling", Collective::AllReduce, {{}, {cube}}, doubling});
}

// Latency, bandwidth and posting as above, whatever the preset says.
Topology machine(const Form& form) {
  Topology topology = *make_topology(form.fabric);
  Fabric& fabric = *topology.hosts[0].imposed;
  // A message passes two links on its way through a switch.
  const double latency = fabric.switches > 0 ? kLatencyNs / 2 : kLatencyNs;
  for (Link& link : fabric.links) link.speed = {latency, kBytesPerSecond};
  fabric.costs = {.post_ns = form.posts ? kPostNs : 0, .reduce_bytes_per_second = 0};
  return topology;
}

double simulated_ns(const Form& form, const Topology& topology, size_t bytes) {
  const int nranks = topology.nranks();
  const bool by_rank = form.collective != Collective::AllReduce;
  const StagedPlans plans(form.shape, nranks, form.collective);
  const auto plan_of = [&](Rank rank) { return plans.make({form.collective, rank, nranks, -1, false}, form.name); };
  SimOptions options;
  options.unit_bytes = by_rank ? bytes / static_cast<size_t>(nranks) : bytes;
  const auto report = simulate(topology, plan_of, options);
  EXPECT_TRUE(report) << report.error().message();
  return report ? report->time_ns : 0;
}

double closed_form_ns(const Form& form, double bytes) {
  const Cost cost = form.cost(form.shape, bytes);
  const double post = form.posts ? kPostNs : 0;
  return cost.steps * (kLatencyNs + post) + (stream_count(level_of(form.shape)) - 1) * post +
         cost.bytes / kBytesPerSecond * 1e9;
}

void expect_equal_times(const std::vector<Form>& forms) {
  ASSERT_FALSE(forms.empty());
  double worst = 0;
  for (const Form& form : forms) {
    const Topology topology = machine(form);
    for (size_t bytes = 1 << 10; bytes <= 64 << 20; bytes *= 4) {
      const double nranks = topology.nranks();
      // Whole units of whole elements.
      const size_t whole = static_cast<size_t>(std::ceil(static_cast<double>(bytes) / (nranks * 4)) * nranks * 4);
      const double expected = closed_form_ns(form, static_cast<double>(whole));
      const double off = simulated_ns(form, topology, whole) / expected - 1;
      worst = std::max(worst, std::abs(off));
      EXPECT_LE(std::abs(off), 0.01) << form.fabric << " " << form.name << " " << name_of(form.collective) << " "
                                     << whole << " bytes: " << off * 100 << " % off " << expected << " ns";
    }
  }
  std::printf("%zu algorithms and fabrics, 9 sizes each: at most %.2f %% off\n", forms.size(), 100 * worst);
}

TEST(ClosedForms, GiveTheTimesOfFlatAlgorithmsOnRingsAndSwitches) {
  std::vector<Form> forms;
  add_flat(forms);
  add_powers_of_two(forms);
  expect_equal_times(forms);
}

TEST(ClosedForms, GiveTheTimesOfAlgorithmsOnTori) {
  std::vector<Form> forms;
  add_tori(forms);
  expect_equal_times(forms);
}

}  // namespace
}  // namespace ccom
