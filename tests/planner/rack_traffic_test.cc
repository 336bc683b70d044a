// SPDX-License-Identifier: Apache-2.0
//
// What crosses between racks by each algorithm, as the lint counts it of the very plans, for several placements of
// ranks: tests/golden/rack_traffic.txt, which docs/algorithms.md repeats.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <map>
#include <sstream>

#include "algorithms/collectives.h"
#include "planner/shapes.h"
#include "planner/wire_fabric.h"
#include "tests/golden.h"
#include "tests/harness/paths.h"
#include "tests/planner/rack_machines.h"

namespace ccom {
namespace {

using testing::HasSubstr;

struct Pattern64 {
  std::string name;
  std::function<std::vector<Plan>(const Topology& topology, Rank root)> plans;
};

// Bytes that leave racks, in vectors.
double between_racks(const Topology& topology, const std::vector<Plan>& plans) {
  const Wires wires(topology);
  const Result<LintReport> report = lint(plans, wire_fabric(wires));
  EXPECT_TRUE(report);
  double sum = 0;
  for (uint32_t wire = 0; wire < wires.count(); ++wire) {
    if (wires.is_rack(wire)) sum += report->link_loads[wire] / 2;  // out of one, into another
  }
  return sum;
}

std::vector<Plan> made(Collective collective, Rank root, const std::function<Plan(const Call&)>& make) {
  std::vector<Plan> plans;
  for (Rank rank = 0; rank < kRanks; ++rank) plans.push_back(make({collective, rank, kRanks, root, false}));
  return plans;
}

Pattern64 tree(const std::string& name, Collective collective, Tree (*make)(const Topology& topology, Rank root)) {
  return {name, [=](const Topology& topology, Rank root) {
            const Tree shape = make(topology, root);
            return made(collective, root, [&](const Call& call) { return tree_plan(call, shape, name); });
          }};
}

Pattern64 staged(const std::string& name, Collective collective, const Staged& shape) {
  return {name, [=](const Topology&, Rank) {
            return made(collective, -1, [&](const Call& call) { return staged_plan(call, shape, name); });
          }};
}

// Recursive halving: pairs, one bit of the rank after another, the lowest or the highest first.
Staged halving(bool near_first) {
  const std::vector<int> dims(6, 2);
  Staged shape{dimension_levels(Pattern::Direct, dims, flat_level(Pattern::Direct, kRanks).groups), {}};
  if (!near_first) std::ranges::reverse(shape.levels);
  return shape;
}

Tree binomial(const Topology&, Rank root) { return knomial_tree(kRanks, root, 2); }
Tree bine(const Topology&, Rank root) { return bine_tree(in_row(), root); }

// By operation; the last one of each is Bine's.
std::vector<std::pair<std::string, std::vector<Pattern64>>> operations() {
  const auto flat = [](Pattern pattern) { return Staged{{flat_level(pattern, kRanks)}, {}}; };
  const auto core = [](Pattern pattern) { return Staged{{}, {flat_level(pattern, kRanks)}}; };
  constexpr Collective kScatter = Collective::ReduceScatter;
  std::vector<std::pair<std::string, std::vector<Pattern64>>> all;
  all.push_back({"broadcast, reduce",
                 {tree("tree, by racks", Collective::Broadcast, machine_tree),
                  tree("binomial", Collective::Broadcast, binomial), tree("bine", Collective::Broadcast, bine)}});
  all.push_back({"gather, scatter",
                 {tree("tree, by racks", Collective::Gather, machine_tree),
                  tree("binomial", Collective::Gather, binomial), tree("bine", Collective::Gather, bine)}});
  all.push_back({"allreduce of short vectors",
                 {staged("recursive_doubling", Collective::AllReduce, core(Pattern::RecursiveDoubling)),
                  staged("bine_latency", Collective::AllReduce, core(Pattern::BineLatency))}});
  all.push_back(
      {"reduce-scatter, allgather",
       {staged("halving, far first", kScatter, halving(false)), staged("halving, near first", kScatter, halving(true)),
        staged("circulant", kScatter, flat(Pattern::Circulant)), staged("ring", kScatter, flat(Pattern::Ring)),
        staged("bine", kScatter, flat(Pattern::Bine))}});
  const auto exchange = [](const char* name, Plan (*make)(const Call&)) {
    return Pattern64{name, [=](const Topology&, Rank) { return made(Collective::AllToAll, -1, make); }};
  };
  all.push_back({"alltoall",
                 {exchange("pairwise", pairwise_alltoall_plan), exchange("bruck", bruck_alltoall_plan),
                  exchange("bine", bine_alltoall_plan)}});
  return all;
}

struct Placement {
  std::string name;
  std::vector<Topology> topologies;
};

std::vector<Placement> placements() {
  std::vector<Placement> all{{"racks of 16", {in_racks_of("16")}},
                             {"of 12", {in_racks_of("12")}},
                             {"of 9, 17", {in_racks_of("9,17")}},
                             {"fragments", {}},
                             {"dealt out", {dealt_out()}}};
  for (uint32_t seed = 1; seed <= 10; ++seed) all[3].topologies.push_back(in_fragments(seed));
  return all;
}

// The mean over roots, where there are any, and over the topologies of a placement.
double mean_between_racks(const Placement& placement, const Pattern64& pattern, bool is_rooted) {
  double sum = 0;
  const int step = is_rooted ? 1 : kRanks;
  int count = 0;
  for (const Topology& topology : placement.topologies) {
    for (Rank root = 0; root < kRanks; root += step, ++count)
      sum += between_racks(topology, pattern.plans(topology, root));
  }
  return sum / count;
}

std::string two_digits(double number) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f", number);
  return text;
}

struct Traffic {
  std::string text;
  std::map<std::string, std::vector<double>> rows;  // "alltoall: bine": by placement
};

Traffic count_traffic() {
  Traffic traffic;
  const std::vector<Placement> where = placements();
  std::ostringstream lines;
  lines << "64 ranks, one per host: vectors that cross between racks, by placement of the hosts\n\n";
  lines << std::left;
  const auto cell = [&](const std::string& word, int width) {
    lines << word << std::string(std::max<int>(1, width - static_cast<int>(word.size())), ' ');
  };
  cell("", 24);
  for (const Placement& placement : where) cell(placement.name, 13);
  for (const auto& [operation, patterns] : operations()) {
    lines << "\n" << operation << "\n";
    for (const Pattern64& pattern : patterns) {
      cell("  " + pattern.name, 24);
      for (const Placement& placement : where) {
        const double bytes = mean_between_racks(placement, pattern, operation[0] == 'b' || operation[0] == 'g');
        traffic.rows[operation + ": " + pattern.name].push_back(bytes);
        cell(two_digits(bytes), 13);
      }
      lines << "\n";
    }
  }
  std::istringstream rows(lines.str());
  for (std::string row; std::getline(rows, row);) traffic.text += row.substr(0, row.find_last_not_of(' ') + 1) + "\n";
  return traffic;
}

const Traffic& traffic() {
  static const Traffic counted = count_traffic();
  return counted;
}

TEST(RackTraffic, IsCountedForEveryPatternAndPlacement) {
  expect_golden("rack_traffic.txt", traffic().text);
  std::ifstream file(source_dir() / "docs/algorithms.md");
  std::stringstream page;
  page << file.rdbuf();
  for (const auto& [name, numbers] : traffic().rows) {
    std::string row = "| " + name;
    for (const double number : numbers) row += " | " + two_digits(number);
    EXPECT_THAT(page.str(), HasSubstr(row + " |"));
  }
}

// As far as the paper says: at most a third less than binomial trees and butterflies, and less wherever racks are no
// powers of two.
TEST(RackTraffic, OfBineIsLessThanThatOfBinomialPatternsByUpToAThird) {
  for (const auto& [bine, other, is_tree] :
       {std::tuple("broadcast, reduce: bine", "broadcast, reduce: binomial", true),
        {"gather, scatter: bine", "gather, scatter: binomial", true},
        {"alltoall: bine", "alltoall: bruck", true},
        {"allreduce of short vectors: bine_latency", "allreduce of short vectors: recursive_doubling", false}}) {
    const std::vector<double>&mine = traffic().rows.at(bine), &theirs = traffic().rows.at(other);
    for (size_t placement = 0; placement < 4; ++placement) {  // all but that with no order
      const bool is_aligned = placement == 0;
      EXPECT_GE(mine[placement], 0.66 * theirs[placement]) << bine;
      if (is_tree || !is_aligned) {
        EXPECT_LT(mine[placement], 0.93 * theirs[placement]) << bine;
      }
    }
  }
}

}  // namespace
}  // namespace ccom
