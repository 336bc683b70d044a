// SPDX-License-Identifier: Apache-2.0
#include "planner/program_pricing.h"

#include <algorithm>
#include <bit>

#include "algorithms/stage_cost.h"
#include "base/collective.h"
#include "planner/hierarchical_search.h"
#include "planner/node_machine.h"

namespace ccom {
namespace {

// A rank's system calls and copies keep this much network busy.
constexpr double kRankBytesPerSecond = 2e9;
// Flows that a wire has no need of take turns on it in tens of milliseconds, and a tile is done when its slowest flow
// is: the wire idles. Measured with 2 x 4 ranks at 1 Gbit/s.
constexpr double kSurplusFlows = 1.2;
// Each message of a host's ranks, one after another: system calls, interrupts.
constexpr double kMessageNs = 2000;

class Pricer {
 public:
  Pricer(const Topology& topology, const Question& question, const Program& program)
      : topology_(topology),
        question_(question),
        program_(program),
        geometry_(program, question.bytes / largest_units(question.collective, program.nranks), 1) {}

  ProgramPrice run() {
    ProgramPrice price;
    price.tiles = std::max<size_t>(geometry_.tiles(), 1);
    double memory_ns = 0, messages_ns = 0;
    for (const Stage& stage : program_.stages) {
      const bool is_host = stage.where == Stage::Where::Host;
      price.stages.push_back(is_host ? host_stage(stage) : across_stage(stage));
      const StagePrice& priced = price.stages.back();
      (is_host ? memory_ns : messages_ns) += priced.time_ns;
      price.whole.cost.steps += is_host && program_.stages.size() > 1 ? 0 : priced.steps;
      price.whole.cost.bytes += is_host && program_.stages.size() > 1 ? 0 : priced.memory_bytes + priced.wire_bytes;
      if (stage.sums) price.whole.roundings += roundings_of(stage);
    }
    const auto further = static_cast<double>(price.tiles - 1);
    price.whole.time_ns = memory_ns + messages_ns + further * std::max(memory_ns, messages_ns);
    return price;
  }

 private:
  double block_bytes() const { return static_cast<double>(geometry_.block_elements(0, 0)); }

  int roundings_of(const Stage& stage) const {
    if (stage.where == Stage::Where::Host) return stage.node.staged.scheme == NodeScheme::Domains ? 2 : 1;
    if (stage.messages.kind == MessageAlgorithm::Kind::Blocks) return 1;
    return price(hosts_alone(topology_, 1), question_across(stage), stage.messages).roundings;
  }

  // By the slowest host. Where hosts are alike, by the first.
  StagePrice host_stage(const Stage& stage) const {
    StagePrice priced;
    const auto tiles = static_cast<double>(geometry_.tiles());
    const size_t block = geometry_.block_elements(0, 0);
    for (size_t group = 0; group < stage.groups.size(); ++group) {
      if (group > 0 && is_like_first_host(stage, group)) continue;
      const HostMachine host(topology_, host_of(stage, group));
      const HostStageCost cost =
          host_stage_cost(program_, stage, group, block, geometry_.tiles(), {.input = true}, host.machine);
      priced.time_ns = std::max(priced.time_ns, cost.time_ns);
      priced.memory_bytes = std::max(priced.memory_bytes, tiles * cost.most.bytes());
      priced.steps = std::max(priced.steps, cost.most.meets);
    }
    return priced;
  }
  int host_of(const Stage& stage, size_t group) const {
    return topology_.ranks[static_cast<size_t>(stage.groups[group][0].rank)].host;
  }
  bool is_like_first_host(const Stage& stage, size_t group) const {
    const Host& first = topology_.hosts[static_cast<size_t>(host_of(stage, 0))];
    const Host& host = topology_.hosts[static_cast<size_t>(host_of(stage, group))];
    return stage.groups[group].size() == stage.groups[0].size() && host.cpus == first.cpus &&
           host.caches == first.caches;
  }

  // What a group of one rank per host asks the pricer of messages.
  Question question_across(const Stage& stage) const {
    Question across{stage.collective, 0, question_.narrow_float, stage.root};
    double most = 0;
    for (const StageMember& member : stage.groups[0]) {
      most = std::max<double>({most, static_cast<double>(program_.gives(member).size()),
                               static_cast<double>(program_.gets(member).size())});
    }
    across.bytes = static_cast<size_t>(most * block_bytes());
    return across;
  }

  StagePrice across_stage(const Stage& stage) const {
    const auto flows = static_cast<double>(stage.groups.size());
    const Question across = question_across(stage);
    Cost cost;
    if (stage.messages.kind == MessageAlgorithm::Kind::Blocks) {
      const auto hosts = static_cast<double>(stage.groups[0].size());
      cost = {1, hosts - 1, static_cast<double>(across.bytes) * (hosts - 1) / hosts, 0};
    } else {
      cost = price(hosts_alone(topology_, 1), across, stage.messages).cost;
    }
    const LinkSpeed& wire = topology_.network;
    const bool has_surplus = flows > 1 && wire.bytes_per_second < flows * kRankBytesPerSecond;
    const double carried = std::min(wire.bytes_per_second, flows * kRankBytesPerSecond);
    const double wire_ns = cost.bytes * flows * 1e9 / carried * (has_surplus ? kSurplusFlows : 1);
    const double posting_ns = cost.posts * flows * kMessageNs;
    return {.time_ns = cost.steps * wire.latency_ns + posting_ns + wire_ns,
            .wire_bytes = cost.bytes * static_cast<double>(geometry_.tiles()),
            .steps = cost.steps};
  }

  const Topology& topology_;
  const Question& question_;
  const Program& program_;
  const ProgramGeometry geometry_;
};

}  // namespace

ProgramPrice price_program(const Topology& topology, const Question& question, const Program& program) {
  return Pricer(topology, question, program).run();
}

}  // namespace ccom
