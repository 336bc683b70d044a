// SPDX-License-Identifier: Apache-2.0
//
// The account of a choice: what each kind of wire carries in the plan that would run, compared with sums by hand; why
// candidates lost; what is left out, and why. And that measured costs change prices.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/link_loads.h"
#include "tests/harness/results.h"

namespace ccom {
namespace {

using testing::HasSubstr;

constexpr size_t kMany = size_t{1} << 19;

Candidate named(const Topology& topology, const Question& question, const std::string& name) {
  const Choice choice = value_of(choose(topology, {.forced = name}, question));
  return choice.candidates[choice.chosen];
}

WireKind kind(const LinkLoadReport& account, const std::string& name) {
  for (const WireKind& each : account.kinds) {
    if (each.name == name) return each;
  }
  ADD_FAILURE() << "no " << name;
  return {};
}

std::string why(const Topology& topology, const Question& question, const std::string& name, size_t most_steps) {
  const Choice choice = value_of(choose(topology, {}, question));
  const Details details = analyze(topology, question, choice, most_steps);
  EXPECT_EQ(details.why.size(), choice.candidates.size());
  for (size_t i = 0; i < details.why.size(); ++i) {
    if (choice.candidates[i].program.algorithm == name) return details.why[i];
  }
  ADD_FAILURE() << "no " << name;
  return "";
}

// 16 ranks send 2 * 15/16 of the vector each, all to a neighbour: a ring over 16 of the torus's 64 links.
TEST(LinkLoadReport, OfARingOnATorusIsTheSumByHand) {
  const Topology torus = *make_topology("torus:4x4");
  const Question question{.bytes = 1 << 24};
  const LinkLoadReport account = link_load_report(torus, question, named(torus, question, "ring").program, kMany);
  ASSERT_EQ(account.missing, "");
  const double each = 1.875 * (1 << 24);
  EXPECT_EQ(account.messages, 16u * 30);
  EXPECT_EQ(account.rounds, 30u);
  EXPECT_EQ(kind(account, "link"), (WireKind{"link", 64, 16, 16 * each, each}));
  EXPECT_EQ(kind(account, "port"), (WireKind{"port", 16, 0, 0, 0}));
  EXPECT_EQ(kind(account, "uplink").used, 0u);
  EXPECT_THAT(account.busiest, HasSubstr("host 0 link "));
  EXPECT_DOUBLE_EQ(account.busiest_bytes, each);
  EXPECT_DOUBLE_EQ(account.busiest_ns, each / 50);
}

TEST(LinkLoadReport, OfSwingOnATorusLoadsEveryLinkEvenlyInEightRounds) {
  const Topology torus = *make_topology("torus:4x4");
  const Question question{.bytes = 1 << 24};
  Program swing = named(torus, question, "swing").program;
  swing.stages[0].messages.staged.windows = 1;
  const LinkLoadReport account = link_load_report(torus, question, swing, kMany);
  EXPECT_EQ(account.rounds, 8u);
  const double each = 1.875 / 4 * (1 << 24);
  EXPECT_EQ(kind(account, "link"), (WireKind{"link", 64, 64, 64 * each, each}));
}

// Uplinks are slower than links: fewer bytes keep one busy for longer.
TEST(LinkLoadReport, NamesTheWireThatIsBusyLongest) {
  const Topology cluster = *make_topology("2*trn1.32xlarge/1");
  const Question question{.bytes = 1 << 26};
  const Choice choice = value_of(choose(cluster, {}, question));
  const LinkLoadReport account = link_load_report(cluster, question, choice.program(), kMany);
  ASSERT_EQ(account.missing, "");
  EXPECT_THAT(account.busiest, HasSubstr("uplink"));
  EXPECT_GE(account.busiest_ns, lower_bound(cluster, question).bandwidth_ns * 0.999);
}

// 32 cards of a p5 host are eight uplinks, 16 of a trn2 host as many: in every stage between hosts each rank talks to
// those of its own place, so that all cards carry as much, in both directions.
TEST(LinkLoadReport, OfLargeCallsBetweenHostsLoadsEveryCardEvenly) {
  for (const auto& [name, uplinks] : {std::pair("4*p5.48xlarge", 64u), {"4*trn2.48xlarge/1", 128u}}) {
    const Topology cluster = *make_topology(name);
    for (const Collective collective : {Collective::AllReduce, Collective::AllGather, Collective::ReduceScatter}) {
      SCOPED_TRACE(testing::Message() << name << ", " << static_cast<int>(collective));
      const Question question{.collective = collective, .bytes = 1 << 28};
      const Choice choice = value_of(choose(cluster, {}, question));
      const WireKind loads = kind(link_load_report(cluster, question, choice.program(), kMany), "uplink");
      EXPECT_EQ(loads.used, uplinks);
      EXPECT_NEAR(loads.bytes, uplinks * loads.most, 1e-3 * loads.bytes);
    }
  }
}

// Windows multiply messages, not bytes.
TEST(LinkLoadReport, OfAPlanOfTooManyWindowsIsThatOfOne) {
  const Topology torus = *make_topology("torus:4x4");
  const Question question{.bytes = 1 << 24};
  Program swing = named(torus, question, "swing").program;
  swing.stages[0].messages.staged.windows = 16;
  const LinkLoadReport all = link_load_report(torus, question, swing, kMany);
  const LinkLoadReport one = link_load_report(torus, question, swing, 16 * 100);
  EXPECT_EQ(all.note, "");
  EXPECT_THAT(one.note, HasSubstr("counted without windows"));
  EXPECT_EQ(all.messages, 16 * one.messages);
  EXPECT_EQ(kind(all, "link"), kind(one, "link"));
}

TEST(LinkLoadReport, SaysWhyItIsMissing) {
  const Question question{.bytes = 1 << 20};
  const Topology torus = *make_topology("torus:4x4");
  const Program ring = named(torus, question, "ring").program;
  EXPECT_THAT(link_load_report(torus, question, ring, 500).missing, HasSubstr("too long"));
  EXPECT_EQ(link_load_report(torus, question, ring, 16 * 60).missing, "") << "30 sends, 30 receives";
  const Topology large = *make_topology("torus:64x32");
  EXPECT_THAT(link_load_report(large, question, ring, kMany).missing, HasSubstr("more than 1024 ranks"));
  const Topology host = *make_topology("host:4");
  const Choice node = *choose(host, {.shared_memory = true}, question);
  EXPECT_THAT(link_load_report(host, question, node.program(), kMany).missing, HasSubstr("no messages"));
}

TEST(Details, NameFewerLinksOrMoreStepsAsTheReasonOfALoss) {
  const Topology torus = *make_topology("torus:4x4");
  EXPECT_THAT(why(torus, {.bytes = 1 << 26}, "ring", kMany), HasSubstr(" x: uses 16 of 64 links, the choice 64"));
  EXPECT_THAT(why(torus, {.bytes = 8}, "ring", kMany), HasSubstr(" x: 30 steps instead of "));
  EXPECT_THAT(why(torus, {.bytes = 8}, "ring", 0), HasSubstr(" x: 30 steps instead of ")) << "without an account too";
  EXPECT_THAT(why(torus, {.bytes = 8}, "one_shot", kMany), HasSubstr("lacks links"));
}

TEST(Details, SayOfTheChoiceHowFarItIsFromTheBound) {
  const Topology torus = *make_topology("torus:8x8");
  const Question question{.bytes = 1 << 28};
  const Choice choice = *choose(torus, {}, question);
  const Details details = analyze(torus, question, choice, kMany);
  EXPECT_EQ(details.ranks, 64);
  EXPECT_THAT(details.why[choice.chosen], HasSubstr("least expected time: "));
  EXPECT_THAT(details.why[choice.chosen], HasSubstr(" x the bound"));
}

TEST(Pricing, FollowsTheMeasuredRateOfReductions) {
  RankView view;
  view.host.id = view.host.name = "a";
  view.host.cpus = 8;
  const Question question{.bytes = 1 << 24};
  const auto time_ns = [&](std::optional<double> rate) {
    view.calibration.emplace();
    view.calibration->reduce_bytes_per_second = rate;
    return named(*merge({view, view, view, view}), question, "ring").time_ns;
  };
  EXPECT_DOUBLE_EQ(time_ns(std::nullopt), time_ns(25e9)) << "the default";
  EXPECT_GT(time_ns(5e9), 1.2 * time_ns(25e9));
}

}  // namespace
}  // namespace ccom
