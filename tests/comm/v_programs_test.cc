// SPDX-License-Identifier: Apache-2.0
//
// Programs of v-forms: on hosts and fabrics of many forms every legal one is proved, can be bound to units of unlike
// lengths, in which each step moves one, and both ends of every message are of one length.
#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <random>

#include "algorithms/stage_plans.h"
#include "comm/shares.h"
#include "plan/program_verify.h"
#include "planner/planner.h"
#include "runner/bound_program.h"
#include "topology/topology.h"

namespace ccom {
namespace {

Topology on_hosts(const std::vector<int>& host_of_rank) {
  std::vector<RankView> views;
  for (const int host : host_of_rank) {
    RankView& view = views.emplace_back();
    view.host.id = view.host.name = "host" + std::to_string(host);
    view.host.cpus = 8;
  }
  return *merge(views);
}

class AllChannels final : public ChannelSource {
 public:
  Result<ChannelRef> open(Rank peer, int index) override {
    channels.push_back({peer, index});
    // Never used: a number that tells the steps of one channel.
    return ChannelRef{.channel = reinterpret_cast<Channel*>(channels.size()), .rank = peer};
  }
  std::vector<std::pair<Rank, int>> channels;
};

// Bytes of the messages of a pair on a channel, in order.
using Lengths = std::map<std::tuple<Rank, Rank, int>, std::vector<size_t>>;

void collect(const BoundPlan& plan, Rank self, const AllChannels& channels, Lengths& sent, Lengths& received) {
  for (const BoundStep& step : plan.steps) {
    if (step.channel == nullptr) continue;
    const auto [peer, index] = channels.channels[reinterpret_cast<size_t>(step.channel) - 1];
    if (step.kind == StepKind::Send) sent[{self, peer, index}].push_back(step.size_bytes);
    if (step.kind != StepKind::Send) received[{peer, self, index}].push_back(step.size_bytes);
  }
}

void expect_bound(const Topology& topology, const Program& program, const UnitLayout& units, const std::string& what) {
  Lengths sent, received;
  for (Rank rank = 0; rank < program.nranks; ++rank) {
    for (const bool in_place : {false, true}) {
      const auto compiled = compile(std::make_shared<const Program>(program), rank, in_place);
      ASSERT_TRUE(compiled) << what << compiled.error().message();
      AllChannels channels;
      const auto bound = bind(*compiled, {.type = DataType::Float32, .op = ReduceOp::Sum, .units = units}, channels);
      ASSERT_TRUE(bound) << what << "rank " << rank << ": " << bound.error().message();
      EXPECT_EQ((*bound)->kinds.size(), (*bound)->first_tiles.size());
      for (const auto& [peer, index] : channels.channels) {
        ASSERT_TRUE(topology.linked(rank, peer)) << what << rank << " and " << peer;
      }
      for (const std::vector<BoundStage>& stages : (*bound)->kinds) {
        for (const BoundStage& stage : stages) {
          for (const auto& plan : stage.plans) {
            if (!in_place) collect(*plan, rank, channels, sent, received);
          }
        }
      }
    }
  }
  EXPECT_EQ(sent, received) << what;
}

void check(const Topology& topology, const Settings& settings, const std::string& name) {
  const auto n = static_cast<size_t>(topology.nranks());
  std::mt19937 random(static_cast<unsigned>(n));
  for (const Collective collective : {Collective::AllGather, Collective::ReduceScatter}) {
    for (const size_t scale : {size_t{3}, size_t{20000}, size_t{700000}}) {
      std::vector<size_t> lengths;
      for (size_t rank = 0; rank < n; ++rank) lengths.push_back(rank % 3 == 1 ? 0 : random() % scale);
      const size_t total = std::accumulate(lengths.begin(), lengths.end(), size_t{0});
      const UnitLayout units{lengths, in_a_row(lengths)};
      const Question question{.collective = collective, .bytes = std::bit_ceil(4 * total + 1), .is_v = true};
      const Result<Choice> choice = choose(topology, settings, question);
      ASSERT_TRUE(choice) << name << ": " << choice.error().message();
      for (const Candidate& candidate : choice->candidates) {
        if (!candidate.legal) continue;
        const Program& program = candidate.program;
        const std::string what = name + ", " + std::string(name_of(collective)) + " " + program.algorithm + ": ";
        EXPECT_TRUE(program.is_v) << what;
        const auto report = verify_program(program, {stage_plan, stage_node_plan});
        EXPECT_TRUE(report) << what << report.error().message();
        expect_bound(topology, program, units, what + std::to_string(scale) + ": ");
      }
    }
  }
}

const Settings kMemory{.shared_memory = true};

TEST(ProgramsOfVForms, AreProvedAndBoundOnHosts) {
  for (const std::vector<int>& hosts : {std::vector{0},
                                        {0, 0},
                                        {0, 0, 0, 0, 0},
                                        {0, 0, 1, 1},
                                        {0, 0, 0, 1, 2, 2},
                                        {0, 1, 0, 1, 0},
                                        {0, 1, 2},
                                        {0, 0, 0, 1, 1, 1, 1, 1, 2}}) {
    check(on_hosts(hosts), kMemory, std::to_string(hosts.size()) + " ranks through memory");
    check(on_hosts(hosts), {}, std::to_string(hosts.size()) + " ranks by messages");
  }
}

TEST(ProgramsOfVForms, AreProvedAndBoundOnFabrics) {
  for (const char* fabric : {"ring:5", "chain:3", "torus:2x3", "torus:4x4", "full:4", "trn1.32xlarge"}) {
    const Result<Topology> topology = make_topology(fabric);
    ASSERT_TRUE(topology) << fabric << ": " << topology.error().message();
    check(*topology, {}, fabric);
  }
}

TEST(ProgramsOfVForms, KeepRankOrderWhereItIsAskedFor) {
  for (const std::vector<int>& hosts : {std::vector{0, 0, 0}, {0, 0, 0, 1, 2, 2}, {0, 1, 0, 1, 0}}) {
    for (const Settings& settings : {kMemory, Settings{}}) {
      const Result<Choice> choice =
          choose(on_hosts(hosts), settings,
                 {.collective = Collective::ReduceScatter, .bytes = 4096, .order = SumOrder::Ranks, .is_v = true});
      ASSERT_TRUE(choice) << choice.error().message();
      const auto report = verify_program(choice->program(), {stage_plan, stage_node_plan});
      ASSERT_TRUE(report) << report.error().message();
      EXPECT_GE(report->order, SumOrder::Ranks) << choice->program().algorithm;
    }
  }
}

}  // namespace
}  // namespace ccom
