// SPDX-License-Identifier: Apache-2.0
//
// The costs of memory that ranks of a host share, from recorded calls.
//
// What ranks measure at their start is what one core or two do with nobody beside; a recording shows what calls take.
// The model stays what it is (algorithms/node_cost.h); its costs change by a factor for each group of them that one
// property of a machine decides. Factors are those with the least
//
//   sum over kinds of calls of weight * loss(ln(predicted / recorded))  +  kPrior * sum of ln(factor)^2,
//
// found by the pattern search of Hooke and Jeeves (J. ACM 8, 1961). The second sum keeps costs that no recorded call
// depends on where they are.
#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <set>

#include "tools/sim/replay_prices.h"

namespace ccom::simtool {
namespace {

// Costs of a group keep their ratios.
struct CostGroup {
  std::vector<double MemoryCosts::*> memory;
  std::vector<double LineCosts::*> lines = {};
};

const std::array kGroups{
    CostGroup{{&MemoryCosts::line_ns, &MemoryCosts::further_line_ns, &MemoryCosts::remote_line_ns,
               &MemoryCosts::remote_further_line_ns, &MemoryCosts::domain_line_ns, &MemoryCosts::reader_ns,
               &MemoryCosts::barrier_ns, &MemoryCosts::call_ns}},
    CostGroup{{&MemoryCosts::switch_ns}},
    CostGroup{{&MemoryCosts::cached_load_ns, &MemoryCosts::cached_store_ns}},
    CostGroup{{&MemoryCosts::far_load_ns, &MemoryCosts::far_store_ns}},
    CostGroup{{&MemoryCosts::memory_load_ns, &MemoryCosts::memory_store_ns, &MemoryCosts::domain_byte_ns,
               &MemoryCosts::domain_remote_byte_ns}},
    CostGroup{{&MemoryCosts::streamed_store_ns}},
    CostGroup{{&MemoryCosts::shared_load_ns, &MemoryCosts::shared_store_ns, &MemoryCosts::long_shared_load_ns,
               &MemoryCosts::long_shared_store_ns},
              {&LineCosts::plain_ns, &LineCosts::claimed_ns, &LineCosts::streamed_ns}},
    CostGroup{{&MemoryCosts::read_call_ns, &MemoryCosts::read_byte_ns}},
    CostGroup{{&MemoryCosts::reduced_byte_ns}},
};
constexpr size_t kUnknowns = kGroups.size() + 1;  // the last one: NodeCosts::reused
using Vector = std::array<double, kUnknowns>;

constexpr double kSteep = 4;  // of the share of what is reused, which begins with a half
constexpr double kPrior = 0.002;
constexpr double kSmallError = 0.3;
constexpr double kFirstStep = 1, kLastStep = 0.01;  // of a logarithm
constexpr double kBetter = 0.9999;                  // by which a sum must be less
constexpr int kMostTries = 2000;
constexpr size_t kMostKinds = 64;  // those that weigh most
constexpr size_t kLeastCalls = 3;  // of a kind

NodeCosts scaled(const NodeCosts& costs, const Vector& logarithms) {
  NodeCosts result = costs;
  for (size_t i = 0; i < kGroups.size(); ++i) {
    for (const auto member : kGroups[i].memory) result.memory.*member *= std::exp(logarithms[i]);
    for (const auto member : kGroups[i].lines) result.lines.*member *= std::exp(logarithms[i]);
  }
  result.reused = 1 / (1 + std::exp(-kSteep * logarithms.back()));
  return result;
}

struct Sample {
  const PricedKind* kind = nullptr;
  double recorded_ns = 0, weight = 0;
};

// Half by calls, half by time.
std::vector<Sample> samples_of(const std::vector<const PricedKind*>& kinds) {
  std::vector<Sample> samples;
  double calls = 0, ns = 0;
  for (const PricedKind* const kind : kinds) {
    if (kind->recorded_ns.size() < kLeastCalls || !kind->program.is_node()) continue;
    samples.push_back({kind, kind->recorded_median_ns});
    calls += static_cast<double>(kind->recorded_ns.size());
    ns += static_cast<double>(kind->recorded_ns.size()) * samples.back().recorded_ns;
  }
  for (Sample& sample : samples) {
    const auto own = static_cast<double>(sample.kind->recorded_ns.size());
    sample.weight = own / calls + own * sample.recorded_ns / ns + 2 / static_cast<double>(samples.size());
  }
  std::ranges::stable_sort(samples, std::greater<>(), &Sample::weight);
  samples.resize(std::min(samples.size(), kMostKinds));
  return samples;
}

// A square of what is small: a few kinds of which most calls were disturbed do not matter more than all others.
double loss(double error) {
  const double size = std::abs(error);
  return size < kSmallError ? size * size : kSmallError * (2 * size - kSmallError);
}

// By sample: ln(predicted / recorded).
Result<std::vector<double>> errors_of(const std::vector<Sample>& samples, const NodeCosts& costs) {
  std::vector<double> errors;
  for (const Sample& sample : samples) {
    PricedKind kind = *sample.kind;
    CCOM_TRY(kind.predict(costs));
    errors.push_back(std::log(std::max(kind.predicted_ns, 1.0) / sample.recorded_ns));
  }
  return errors;
}

// Looks for the least sum along each unknown, then once more in the direction in which that has led, with
// shorter and shorter steps. The sum has kinks, where the slowest rank or the place of buffers changes, at which slopes
// mislead.
class Search {
 public:
  Search(const std::vector<Sample>& samples, const NodeCosts& start) : samples_(samples), start_(start) {}

  Result<NodeCosts> run() {
    CCOM_TRY_ASSIGN(least_, sum_at(best_));
    for (double step = kFirstStep; step >= kLastStep && tries_ < kMostTries;) {
      const Vector before = best_;
      CCOM_TRY(explore(best_, step));
      if (best_ == before) {
        step /= 2;
        continue;
      }
      Vector ahead = best_;
      for (size_t u = 0; u < kUnknowns; ++u) ahead[u] += best_[u] - before[u];
      CCOM_TRY(explore(ahead, step));
    }
    return scaled(start_, best_);
  }

 private:
  Result<double> sum_at(const Vector& x) {
    ++tries_;
    CCOM_TRY_ASSIGN(const std::vector<double> errors, errors_of(samples_, scaled(start_, x)));
    double sum = kPrior * std::inner_product(x.begin(), x.end(), x.begin(), 0.0);
    for (size_t i = 0; i < samples_.size(); ++i) sum += samples_[i].weight * loss(errors[i]);
    return sum;
  }

  // From x, one unknown after another; what is better than the best one so far becomes that.
  Status explore(Vector x, double step) {
    CCOM_TRY_ASSIGN(double here, sum_at(x));
    for (size_t u = 0; u < kUnknowns; ++u) {
      for (const double way : {step, -step}) {
        Vector moved = x;
        moved[u] += way;
        CCOM_TRY_ASSIGN(const double there, sum_at(moved));
        if (there >= kBetter * here) continue;
        x = moved;
        here = there;
        break;
      }
    }
    if (here >= least_) return {};
    best_ = x;
    least_ = here;
    return {};
  }

  const std::vector<Sample>& samples_;
  const NodeCosts& start_;
  Vector best_{};
  double least_ = 0;
  int tries_ = 0;
};

// Sizes and collectives of one half lie between those of the other.
bool is_in_second_half(const std::vector<Sample>& samples, const Sample& sample) {
  std::set<std::pair<Collective, size_t>> kinds;
  for (const Sample& each : samples) kinds.insert({each.kind->what.collective, each.kind->what.bytes});
  const auto place = kinds.find({sample.kind->what.collective, sample.kind->what.bytes});
  return std::distance(kinds.begin(), place) % 2 == 1;
}

Result<double> error_elsewhere(const std::vector<Sample>& samples, const NodeCosts& start) {
  std::array<std::vector<Sample>, 2> halves;
  for (const Sample& sample : samples) halves[is_in_second_half(samples, sample) ? 1 : 0].push_back(sample);
  std::vector<double> factors;
  for (const int half : {0, 1}) {
    const auto& known = halves[static_cast<size_t>(half)];
    const auto& unseen = halves[static_cast<size_t>(1 - half)];
    CCOM_TRY_ASSIGN(const NodeCosts costs, Search(known, start).run());
    CCOM_TRY_ASSIGN(const std::vector<double> errors, errors_of(unseen, costs));
    for (size_t i = 0; i < unseen.size(); ++i)
      factors.insert(factors.end(), unseen[i].kind->recorded_ns.size(), std::exp(std::abs(errors[i])));
  }
  return median_of(std::move(factors));
}

}  // namespace

Status fit_costs(const Replay& replay, ReplayMachine& machine) {
  Prices prices(replay, machine);
  CCOM_TRY(prices.read(false));
  const std::vector<Sample> samples = samples_of(prices.kinds());
  if (samples.empty()) return {};
  const NodeCosts start = machine.node_costs.value_or(NodeCosts{machine.topology.memory_costs, {}});
  CCOM_TRY_ASSIGN(const double elsewhere, error_elsewhere(samples, start));
  CCOM_TRY_ASSIGN(machine.node_costs, Search(samples, start).run());
  machine.fit = CostFit{samples.size(), elsewhere};
  return {};
}

}  // namespace ccom::simtool
