// SPDX-License-Identifier: Apache-2.0
//
// Operators that do not commute, and bits that depend on nothing: on every shape of machine there is a program for each
// reduction, and all that are legal have the order of contributions that is asked for, by the verifier's expression;
// what the planner knows of programs without proving them (sum_order) is never more than that.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/rank_order.h"
#include "algorithms/shape.h"
#include "algorithms/stage_plans.h"
#include "base/collective.h"
#include "plan/program_verify.h"
#include "planner/planner.h"
#include "tests/harness/results.h"
#include "tests/planner/machines.h"
#include "topology/topology.h"

namespace ccom {
namespace {

constexpr Collective kReductions[] = {Collective::AllReduce, Collective::ReduceScatter, Collective::Reduce};

Topology hosts_of(const std::vector<int>& hosts, bool in_turn, double bytes_per_second = 3e9) {
  return ranks_on(hosts, {.bytes_per_second = bytes_per_second}, in_turn);
}

class RankOrder {
 public:
  RankOrder(Topology topology, Settings settings) : topology_(std::move(topology)), settings_(std::move(settings)) {}

  void check() {
    const Rank n = topology_.nranks();
    for (const Collective collective : kReductions) {
      const std::vector<Rank> roots =
          is_rooted(collective) ? std::vector<Rank>{0, n / 2, n - 1} : std::vector<Rank>{-1};
      for (const Rank root : roots) {
        for (const size_t bytes : {size_t{8}, size_t{64} << 10, size_t{64} << 20})
          check({collective, bytes, false, root});
      }
    }
  }

 private:
  void check(Question question) {
    const Result<Choice> any = choose(topology_, settings_, question);
    ASSERT_TRUE(any) << text(question) << any.error().message();
    for (const Candidate& candidate : any->candidates) {
      if (!candidate.legal) continue;
      EXPECT_GE(proved_order(candidate.program), sum_order(candidate.program))
          << text(question) << candidate.program.algorithm << " is trusted";
    }
    for (const SumOrder order : {SumOrder::Ranks, SumOrder::Canonical}) {
      question.order = order;
      check_legal_ones(question);
    }
  }

  void check_legal_ones(const Question& question) {
    const Result<Choice> ordered = choose(topology_, settings_, question);
    ASSERT_TRUE(ordered) << text(question) << ordered.error().message();
    EXPECT_TRUE(ordered->candidates[ordered->chosen].legal) << text(question);
    for (const Candidate& candidate : ordered->candidates) {
      if (!candidate.legal) continue;
      EXPECT_GE(proved_order(candidate.program), question.order) << text(question) << candidate.program.algorithm;
      if (question.order == SumOrder::Canonical && topology_.nranks() > 1) {
        EXPECT_EQ(candidate.roundings, 1) << text(question) << candidate.program.algorithm;
      }
    }
  }

  std::string text(const Question& question) const {
    return std::string(name_of(question.collective)) + " of " + std::to_string(topology_.nranks()) + " ranks, " +
           std::to_string(question.bytes) + " bytes, root " + std::to_string(question.root) + ": ";
  }

  SumOrder proved_order(const Program& program) {
    for (const auto& [known, order] : proved_) {
      if (known == program) return order;
    }
    const Result<ProgramReport> report = verify_program(program, {stage_plan, stage_node_plan});
    EXPECT_TRUE(report) << program.algorithm << ": " << report.error().message();
    proved_.emplace_back(program, report ? report->order : SumOrder::Any);
    return proved_.back().second;
  }

  const Topology topology_;
  const Settings settings_;
  std::vector<std::pair<Program, SumOrder>> proved_;
};

const Settings through_memory{.shared_memory = true};

TEST(RankOrder, IsKeptOnOneHost) {
  for (const int ranks : {1, 2, 3, 4, 8}) {
    RankOrder(hosts_of({ranks}, false), through_memory).check();
    RankOrder(hosts_of({ranks}, false), {}).check();
  }
}

class RankOrderOnHosts : public testing::TestWithParam<std::vector<int>> {};

TEST_P(RankOrderOnHosts, IsKept) {
  for (const bool in_turn : {false, true}) {
    RankOrder(hosts_of(GetParam(), in_turn), through_memory).check();
    RankOrder(hosts_of(GetParam(), in_turn), {}).check();
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, RankOrderOnHosts,
                         testing::Values(std::vector{1, 1}, std::vector{2, 2}, std::vector{4, 4}, std::vector{3, 5},
                                         std::vector{5, 1, 2}, std::vector{1, 4}, std::vector{2, 2, 2},
                                         std::vector{2, 2, 3, 2}, std::vector{1, 1, 1, 1, 1}));

class RankOrderOnFabrics : public testing::TestWithParam<const char*> {};

TEST_P(RankOrderOnFabrics, IsKept) {
  const Topology topology = value_of(make_topology(GetParam()));
  RankOrder(topology, {}).check();
}

INSTANTIATE_TEST_SUITE_P(Fabrics, RankOrderOnFabrics,
                         testing::Values("ring:3", "ring:5", "torus:2x2", "torus:3x4", "torus:4x4", "trn1.32xlarge",
                                         "2*trn1.32xlarge/1"));

// Where ranks lie host by host, the programs for several hosts serve; dealt out in turn they would change the order.
TEST(RankOrder, DecidesWhichProgramsAreLegal) {
  const auto legal_ones = [&](bool in_turn, SumOrder order = SumOrder::Ranks) {
    std::vector<std::string> names;
    const Question question{.collective = Collective::AllReduce, .bytes = 1 << 20, .order = order};
    const Choice choice = *choose(hosts_of({4, 4}, in_turn), through_memory, question);
    for (const Candidate& candidate : choice.candidates) {
      if (candidate.legal) names.push_back(candidate.program.algorithm);
    }
    std::ranges::sort(names);
    return names;
  };
  EXPECT_EQ(legal_ones(false), (std::vector<std::string>{"gather_tree", "hierarchical_doubling", "hierarchical_leaders",
                                                         "hierarchical_messages", "hierarchical_sharded", "one_shot",
                                                         "recursive_doubling", "tree", "two_shot"}));
  EXPECT_EQ(legal_ones(true), (std::vector<std::string>{"gather_tree", "one_shot", "recursive_doubling", "two_shot"}));
  for (const bool in_turn : {false, true}) {
    EXPECT_EQ(legal_ones(in_turn, SumOrder::Canonical),
              (std::vector<std::string>{"gather_tree", "hierarchical_direct", "one_shot", "two_shot"}));
  }
}

TEST(RankOrder, RefusesAnAlgorithmThatChangesIt) {
  const Settings settings{.forced = "ring", .shared_memory = true};
  const Question question{.collective = Collective::AllReduce, .bytes = 1 << 20, .order = SumOrder::Ranks};
  const Status failure = error_of(choose(hosts_of({4}, false), settings, question));
  EXPECT_EQ(failure.code(), Code::NotSupported);
  EXPECT_NE(failure.message().find("rank order"), std::string::npos) << failure.message();
}

// What sums on the way can never be canonical, and says so; what is preferred without being forced is no error.
TEST(RankOrder, RefusesAnAlgorithmWithAnotherGrouping) {
  const Question question{.collective = Collective::AllReduce, .bytes = 1 << 20, .order = SumOrder::Canonical};
  for (const char* name : {"ring", "circulant", "recursive_doubling", "hierarchical_sharded", "hierarchical_leaders"}) {
    const Status failure = error_of(choose(hosts_of({4, 4}, false), {.forced = name, .shared_memory = true}, question));
    EXPECT_EQ(failure.code(), Code::NotSupported) << name;
    EXPECT_NE(failure.message().find("as determinism=full asks"), std::string::npos) << failure.message();
  }
  for (const char* name : {"hierarchical", "hierarchical_direct", "two_shot", "one_shot", "gather_tree"}) {
    EXPECT_TRUE(choose(hosts_of({4, 4}, false), {.forced = name, .shared_memory = true}, question)) << name;
  }
  const Settings preferring{.preferred = "hierarchical_leaders", .shared_memory = true};
  EXPECT_TRUE(choose(hosts_of({4, 4}, false), preferring, question));
  EXPECT_EQ(choose(hosts_of({4, 4}, false), preferring, {.bytes = 1 << 20})->program().algorithm,
            "hierarchical_leaders");
}

// Sums of narrow floats that may be rounded once: every legal program does, by the verifier. Between hosts of several
// ranks some of them send float32.
TEST(OneRounding, IsKeptByAllLegalPrograms) {
  for (const auto& [hosts, in_turn] :
       {std::pair(std::vector{4}, false), std::pair(std::vector{2, 2}, false), std::pair(std::vector{3, 2}, true),
        std::pair(std::vector{4, 4, 4}, false), std::pair(std::vector{1, 1, 1}, false)}) {
    const Topology topology = hosts_of(hosts, in_turn);
    const bool has_host_sums = hosts.size() > 1 && hosts[0] > 1;
    for (const Collective collective : kReductions) {
      const Question question{.collective = collective,
                              .bytes = 1 << 20,
                              .narrow_float = true,
                              .root = is_rooted(collective) ? 1 : -1,
                              .rounds_once = true};
      const Choice choice = value_of(choose(topology, through_memory, question));
      std::set<std::string> floats;
      for (const Candidate& candidate : choice.candidates) {
        if (!candidate.legal) continue;
        const ProgramReport report = value_of(verify_program(candidate.program, {stage_plan, stage_node_plan}));
        EXPECT_EQ(report.max_roundings, 1) << candidate.program.algorithm;
        EXPECT_EQ(candidate.roundings, 1) << candidate.program.algorithm;
        if (candidate.program.wire() == UnitType::Float32) floats.insert(candidate.program.algorithm);
      }
      using Names = std::set<std::string>;
      EXPECT_EQ(floats, has_host_sums ? Names({"hierarchical_leaders", "hierarchical_sharded"}) : Names());
      const Settings forced{.forced = "ring", .shared_memory = true};
      const Result<Choice> refused = choose(topology, forced, question);
      if (topology.nranks() == 2 || is_rooted(collective)) continue;
      ASSERT_FALSE(refused);
      EXPECT_NE(refused.error().message().find("allow one rounding"), std::string::npos) << refused.error().message();
    }
  }
}

// Contributions cross as they are, (g+1)/2 times the bytes of hosts' sums, or hosts' sums cross as float32: what costs
// less. determinism=full leaves the first alone.
TEST(OneRounding, SendsWhatHasFewerBytesOnASlowNetwork) {
  const auto chosen = [](int ranks_per_host, size_t element, SumOrder order = SumOrder::Any) {
    const Topology topology = hosts_of({ranks_per_host, ranks_per_host}, false, 1.25e8);
    const Question question{.collective = Collective::AllReduce,
                            .bytes = size_t{16} << 20,
                            .narrow_float = true,
                            .order = order,
                            .rounds_once = true,
                            .narrow_bytes = element};
    return value_of(choose(topology, through_memory, question)).program().wire();
  };
  EXPECT_EQ(chosen(2, 2), UnitType::Call);     // 1.5 against 2
  EXPECT_EQ(chosen(4, 2), UnitType::Float32);  // 2.5 against 2
  EXPECT_EQ(chosen(4, 1), UnitType::Call);     // 2.5 against 4
  EXPECT_EQ(chosen(8, 1), UnitType::Float32);  // 4.5 against 4
  EXPECT_EQ(chosen(8, 1, SumOrder::Canonical), UnitType::Call);
}

TEST(RankOrder, CanBeAskedForByName) {
  const Question question{.collective = Collective::Reduce, .bytes = 4096, .root = 1};
  for (const char* name : {"in_order", "reduce:gather_tree"}) {
    const Settings settings{.forced = name, .shared_memory = true};
    const Choice choice = value_of(choose(hosts_of({4}, false), settings, question));
    EXPECT_TRUE(std::string(name).ends_with(choice.program().algorithm)) << choice.program().algorithm;
  }
}

// The verifier sees a changed order, and so does the planner.
TEST(RankOrder, SeesFaults) {
  const Topology topology = hosts_of({4, 4}, false);
  const Question question{.collective = Collective::AllReduce, .bytes = 1 << 20, .order = SumOrder::Ranks};
  Settings settings = through_memory;
  settings.forced = "hierarchical_leaders";
  Program program = choose(topology, settings, question)->program();
  const auto is_kept = [](const Program& tried) {
    const Result<ProgramReport> report = verify_program(tried, {stage_plan, stage_node_plan});
    EXPECT_TRUE(report) << report.error().message();
    EXPECT_EQ(report->order, sum_order(tried));
    return report->order != SumOrder::Any;
  };
  EXPECT_TRUE(is_kept(program));
  for (Stage& stage : program.stages) {
    if (stage.where != Stage::Where::Across) continue;
    for (auto& group : stage.groups) std::swap(group[0], group[1]);
  }
  EXPECT_FALSE(is_kept(program)) << "hosts in another order";

  settings.forced = "gather_tree";
  program = choose(topology, settings, question)->program();
  EXPECT_TRUE(is_kept(program));
  Tree& tree = program.stages[0].messages.tree;
  tree = knomial_tree(8, 1, 2);
  EXPECT_FALSE(is_kept(program)) << "ranks 2 to 7, then 0, hang below rank 1";
}

}  // namespace
}  // namespace ccom
