// SPDX-License-Identifier: Apache-2.0
//
// What a user's program is asked for beyond the promise of its collective: order, where the operator does not commute.
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
  ordered.ordered = true;
  EXPECT_TRUE(prove_users(program_of("ring"), any, 9).is_ok());
  EXPECT_TRUE(prove_users(program_of("two_shot"), ordered, 9).is_ok());
  const Status refused = prove_users(program_of("ring"), ordered, 9);
  EXPECT_EQ(refused.code(), Code::ConfigError);
  EXPECT_NE(refused.message().find("CCOM_PLAN: allreduce ring does not combine contributions in rank order"),
            std::string::npos)
      << refused.message();
  EXPECT_EQ(prove(program_of("ring"), true).code(), Code::InternalError);
  EXPECT_TRUE(prove(program_of("ring"), false).is_ok());
}

}  // namespace
}  // namespace ccom
