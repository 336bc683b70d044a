// SPDX-License-Identifier: Apache-2.0
//
// What the calls of a replay take on a machine: calls that are alike are simulated once.
#pragma once

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "tools/sim/cases.h"
#include "tools/sim/replay.h"

namespace ccom::simtool {

// Calls of one communicator, length and algorithm.
struct PricedKind {
  Case what;
  SimOptions options;
  const Topology* topology = nullptr;
  Program program;               // none where one rank is alone
  bool is_recorded_way = false;  // it was recorded in which way it runs
  std::vector<double> recorded_ns;
  size_t calls = 0;
  double recorded_median_ns = 0;
  std::vector<std::vector<double>> recorded_early_ns;  // by rank: ReplayCall::Part
  std::vector<double> early_ns;                        // the medians of these
  // If all ranks come at once, what each does of that before it waits for others, and if they come as they did.
  double together_ns = 0;
  std::vector<double> first_ns;
  double predicted_ns = 0;

  // From when the last one comes, if each comes so much before it.
  double time_ns(const std::vector<double>& early_ns) const;
  Status predict(const std::optional<NodeCosts>& costs);
};

double median_of(std::vector<double> values);

// Refers to the replay and the machine.
class Prices {
 public:
  Prices(const Replay& replay, const ReplayMachine& machine) : replay_(replay), machine_(machine) {}
  Prices(const Prices&) = delete;
  Prices& operator=(const Prices&) = delete;

  // Of all calls of the replay; with what each takes, unless `predicts` is false.
  Status read(bool predicts = true);
  const PricedKind& of(size_t call) const { return *by_call_[call]; }
  std::vector<const PricedKind*> kinds() const;

 private:
  using Key = std::tuple<size_t, uint64_t, uint64_t, std::string>;

  Result<PricedKind> kind_of_call(const ReplayCall& call);
  const Topology* topology_of(size_t group);

  const Replay& replay_;
  const ReplayMachine& machine_;
  std::map<Key, PricedKind> kinds_;
  std::vector<const PricedKind*> by_call_;
  std::map<size_t, Topology> parts_;
};

}  // namespace ccom::simtool
