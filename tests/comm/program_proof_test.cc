// SPDX-License-Identifier: Apache-2.0
//
// What a user's program is asked for beyond the promise of its collective: the order of contributions where the
// operator does not commute, and their grouping where bits must not depend on the program.
#include "comm/program_proof.h"

#include <gtest/gtest.h>

#include <string>

namespace ccom {
namespace {

Program program_of(const char* algorithm) {
  std::vector<RankView> views(4);
  for (RankView& view : views) view.host.id = view.host.name = "host";
  const Topology topology = *merge(views);
  const Settings settings{.forced = algorithm};
  return choose(topology, settings, {.collective = Collective::AllReduce, .bytes = 4096})->program();
}

TEST(ProofOfAUsersProgram, RefusesAChangedOrderWhereItMattersAlone) {
  const Question any{.collective = Collective::AllReduce, .bytes = 4096};
  Question ordered = any;
  ordered.order = SumOrder::Ranks;
  EXPECT_TRUE(prove_users(program_of("ring"), any, 9).is_ok());
  EXPECT_TRUE(prove_users(program_of("two_shot"), ordered, 9).is_ok());
  const Status refused = prove_users(program_of("ring"), ordered, 9);
  EXPECT_EQ(refused.code(), Code::ConfigError);
  EXPECT_NE(refused.message().find("CCOM_PLAN: allreduce ring does not combine contributions in rank order"),
            std::string::npos)
      << refused.message();
  EXPECT_EQ(prove(program_of("ring"), {.order = SumOrder::Ranks}).code(), Code::InternalError);
  EXPECT_TRUE(prove(program_of("ring"), {.order = SumOrder::Any}).is_ok());
}

TEST(ProofOfAUsersProgram, RefusesAnotherGroupingWhereBitsMustNotDependOnIt) {
  Question canonical{.collective = Collective::AllReduce, .bytes = 4096, .order = SumOrder::Canonical};
  EXPECT_TRUE(prove_users(program_of("two_shot"), canonical, 9).is_ok());
  const Status refused = prove_users(program_of("recursive_doubling"), canonical, 9);
  EXPECT_EQ(refused.code(), Code::ConfigError);
  EXPECT_NE(
      refused.message().find("CCOM_PLAN: allreduce recursive_doubling does not combine all contributions at once"),
      std::string::npos)
      << refused.message();
  EXPECT_NE(refused.cure().find("CCOM_DETERMINISM"), std::string::npos);
  EXPECT_EQ(prove(program_of("recursive_doubling"), {.order = SumOrder::Canonical}).code(), Code::InternalError);
  EXPECT_TRUE(prove(program_of("recursive_doubling"), {.order = SumOrder::Ranks}).is_ok());
  EXPECT_TRUE(prove(program_of("one_shot"), {.order = SumOrder::Canonical}).is_ok());
}

TEST(ProofOfAUsersProgram, RefusesFurtherRoundingsWhereThereMayBeOne) {
  const Question once{.collective = Collective::AllReduce, .bytes = 4096, .narrow_float = true, .rounds_once = true};
  EXPECT_TRUE(prove(program_of("two_shot"), once).is_ok());
  EXPECT_EQ(prove(program_of("recursive_doubling"), once).code(), Code::InternalError);
  EXPECT_TRUE(prove_users(program_of("two_shot"), once, 1).is_ok());
  EXPECT_EQ(prove_users(program_of("recursive_doubling"), once, 1).code(), Code::ConfigError);
}

}  // namespace
}  // namespace ccom
