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
    double memory_ns = 0, messages_ns = 0, far_ns = 0;
    for (const Stage& stage : program_.stages) {
      const bool is_host = stage.where == Stage::Where::Host;
      price.stages.push_back(is_host ? host_stage(stage) : across_stage(stage));
      const StagePrice& priced = price.stages.back();
      (is_host ? memory_ns : messages_ns) += priced.time_ns;
      far_ns += priced.far_ns;
      price.whole.cost.steps += is_host && program_.stages.size() > 1 ? 0 : priced.steps;
      price.whole.cost.bytes += is_host && program_.stages.size() > 1 ? 0 : priced.memory_bytes + priced.wire_bytes;
      price.whole.roundings += roundings_of(stage);
    }
    const auto further = static_cast<double>(price.tiles - 1);
    const double next_ns = std::max(messages_ns - far_ns, messages_ns / static_cast<double>(kTilesUnderWay));
    price.whole.time_ns = memory_ns + messages_ns + further * std::max(memory_ns, far_ns > 0 ? next_ns : messages_ns);
    const auto tiles = static_cast<double>(price.tiles);
    price.whole.parts = {.inside_ns = tiles * memory_ns, .across_ns = tiles * messages_ns};
    return price;
  }

 private:
  // Of what it gives or gets, if that is more.
  size_t block_bytes(const Stage& stage) const {
    const size_t block = geometry_.block_elements(0, 0);
    return std::max(bytes_as(stage.gives_type, question_, block), bytes_as(stage.gets_type, question_, block));
  }

  int roundings_of(const Stage& stage) const {
    if (stage.gets_type == UnitType::Float32) return 0;
    if (stage.gives_type != stage.gets_type) return 1;
    if (!stage.sums) return 0;
    if (stage.where == Stage::Where::Host) return stage.node.staged.scheme == NodeScheme::Domains ? 2 : 1;
    return price_of(stage).roundings;
  }

  // By the slowest host. Where hosts are alike, by the first.
  StagePrice host_stage(const Stage& stage) const {
    StagePrice priced;
    const auto tiles = static_cast<double>(geometry_.tiles());
    const size_t block = block_bytes(stage);
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
    across.bytes = static_cast<size_t>(most * static_cast<double>(block_bytes(stage)));
    return across;
  }

  // Blocks go straight from those who have them: by the member that gets most, or of a scatter by the root.
  Cost cost_of_blocks(const Stage& stage) const {
    const auto others = static_cast<double>(stage.groups[0].size() - 1);
    double most = 0, all = 0;
    for (const StageMember& member : stage.groups[0]) {
      double foreign = 0;
      for (const BlockAt& at : program_.gets(member)) {
        const bool is_own = std::ranges::count(program_.gives(member), at.block, &BlockAt::block) > 0;
        foreign += stage.sums ? others : is_own ? 0 : 1;
      }
      most = std::max(most, foreign);
      all += foreign;
    }
    const double blocks = stage.collective == Collective::Scatter ? all : most;
    const double bytes = blocks * static_cast<double>(block_bytes(stage));
    // Messages to one peer that are started together count as one.
    return {1, others, bytes, stage.sums ? bytes : 0};
  }

  Price price_of(const Stage& stage) const {
    const Topology hosts = hosts_alone(topology_);
    const MachineView view = machine_view(hosts);
    const Question question = question_across(stage);
    const double mates = mates_of(stage.groups[0]);
    const MessagePricer pricer(hosts, view, question, static_cast<double>(stage.groups.size()) * (1 + mates));
    if (stage.messages.kind != MessageAlgorithm::Kind::Blocks) return pricer.price(stage.messages);
    const Cost cost = cost_of_blocks(stage);
    const double inside = mates == 0 ? 0 : mates / static_cast<double>(stage.groups[0].size() - 1);
    Price priced = pricer.price_across(share_of(cost, 1 - inside));
    priced.roundings = stage.sums ? 1 : 0;
    if (mates == 0) return priced;
    const MachineView whole = machine_view(topology_);
    const Price within = MessagePricer(topology_, whole, question_).price_inside(share_of(cost, inside));
    priced.time_ns += within.time_ns;
    priced.cost.bytes += within.cost.bytes;
    return priced;
  }
  static Cost share_of(const Cost& cost, double share) {
    return {cost.steps, cost.posts * share, cost.bytes * share, cost.reduced * share};
  }
  // How many others of a group share a member's host, where most do.
  double mates_of(const std::vector<StageMember>& group) const {
    std::vector<int> members(topology_.hosts.size());
    for (const StageMember& member : group)
      ++members[static_cast<size_t>(topology_.ranks[static_cast<size_t>(member.rank)].host)];
    return std::ranges::max(members) - 1;
  }

  StagePrice across_stage(const Stage& stage) const {
    const Price priced = price_of(stage);
    const bool is_far = topology_.bytes_between_racks() > 0;
    return {.time_ns = priced.time_ns,
            .far_ns = is_far ? priced.parts.waits_ns : 0,
            .wire_bytes = priced.cost.bytes * static_cast<double>(geometry_.tiles()),
            .steps = priced.cost.steps};
  }

  const Topology& topology_;
  const Question& question_;
  const Program& program_;
  const ProgramGeometry geometry_;
};

}  // namespace

size_t bytes_as(UnitType type, const Question& question, size_t call_bytes) {
  if (type == UnitType::Call) return call_bytes;
  const size_t elements = call_bytes / (question.narrow_float ? question.narrow_bytes : sizeof(float));
  const DataType held = data_type(type, DataType::Float32);
  return elements_for(held, elements) * size_of(held);
}

ProgramPrice price_program(const Topology& topology, const Question& question, const Program& program) {
  return Pricer(topology, question, program).run();
}

}  // namespace ccom
