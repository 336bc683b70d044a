// SPDX-License-Identifier: Apache-2.0
#include "planner/program_notes.h"

#include "algorithms/stage_cost.h"
#include "base/collective.h"
#include "base/text.h"
#include "planner/node_machine.h"

namespace ccom {

std::string node_note(const Topology& topology, const Question& question, const Program& program) {
  const Stage& stage = program.stages[0];
  const HostMachine host(topology, 0);
  const ProgramGeometry geometry(program, question.bytes / largest_units(question.collective, program.nranks), 1);
  std::string note, first;
  for (const auto& [means, reach] :
       {std::pair("ordinary buffers", Reach{true, false}), std::pair("mapped", Reach{true, true})}) {
    const HostStageCost cost =
        host_stage_cost(program, stage, 0, geometry.block_elements(0, 0), geometry.tiles(), reach, host.machine);
    const NodeShape& ordinary = stage.node.reads ? stage.node.readable : stage.node.staged;
    const std::string name(name_of((reach.output ? stage.node.mapped : ordinary).scheme));
    if (first.empty()) note = first = name;
    note += std::string("; ") + means + ": " + (name == first ? "" : name + ", ") +
            printed("%.1f us, %.0f barrier%s, %.0f bytes", cost.time_ns / 1e3, cost.most.meets,
                    cost.most.meets == 1 ? "" : "s", cost.most.bytes());
    if (cost.most.remote_bytes > 0) {
      note += " (" + std::to_string(static_cast<uint64_t>(cost.most.remote_bytes)) + " of other memory domains)";
    }
    if (!stage.node.asks) break;  // nobody says where its buffers are
  }
  return note;
}

std::string stages_note(const Program& program, const ProgramPrice& priced) {
  std::string note;
  for (size_t i = 0; i < program.stages.size(); ++i) {
    note +=
        printed("%s%s %.1f us", i == 0 ? "" : ", ", program.stages[i].where == Stage::Where::Host ? "inside" : "across",
                priced.stages[i].time_ns / 1e3);
  }
  return priced.tiles > 1 ? note + "; " + std::to_string(priced.tiles) + " tiles" : note;
}

}  // namespace ccom
