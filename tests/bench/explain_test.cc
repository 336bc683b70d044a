// SPDX-License-Identifier: Apache-2.0
//
// What --explain prints of ccomExplain's object, with and without details.
#include "bench/explain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ccom::bench {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;

constexpr char kPlain[] =
    R"({"collective":"allreduce","bytes":8,"algorithm":"ring","reason":"least expected time","candidates":[)"
    R"({"algorithm":"ring","legal":true,"steps":6,"bytes_sent":12,"time_us":3.5,"roundings":3,"note":"2 windows"},)"
    R"({"algorithm":"node","legal":false,"steps":0,"bytes_sent":0,"time_us":0,"roundings":0,"note":"no memory"}]})";
constexpr char kDetailed[] =
    R"({"collective":"allreduce","bytes":8,"algorithm":"ring","reason":"r","ranks":4,)"
    R"("bound":{"time_us":2.5,"bandwidth_us":1.5,"latency_us":2.5,"narrowest":"devices' links"},)"
    R"("rounds":6,"messages":24,"links":[{"kind":"link","there":8,"used":4,"bytes":96,"most":24}],)"
    R"("busiest":{"name":"host 0 link 1->2","bytes":24,"time_us":0.25},"candidates":[)"
    R"({"algorithm":"ring","legal":true,"steps":6,"bytes_sent":12,"time_us":3.5,"roundings":3,"note":"2 windows",)"
    R"("times_bound":1.4,"why":"r: 6 steps"}]})";

TEST(ExplanationTable, MarksTheChoiceAndSaysWhatIsIllegal) {
  const std::string table = explanation_table(kPlain);
  EXPECT_THAT(table, HasSubstr("* ring "));
  EXPECT_THAT(table, HasSubstr("  2 windows\n"));
  EXPECT_THAT(table, HasSubstr("  no memory\n"));
  EXPECT_THAT(table, HasSubstr("* least expected time\n"));
  EXPECT_THAT(table, Not(HasSubstr("busiest")));
}

TEST(ExplanationTable, TellsBoundLinksAndReasons) {
  const std::string table = explanation_table(kDetailed);
  EXPECT_THAT(table, HasSubstr("4 ranks; no algorithm can take less than 2.500 us: 1.500 us for bytes over the "
                               "devices' links, 2.500 us for the longest path\n"));
  EXPECT_THAT(table, HasSubstr("    1.40  r: 6 steps (2 windows)\n"));
  EXPECT_THAT(table, HasSubstr("24 messages in 6 rounds; busiest: host 0 link 1->2, 24 bytes in 0.250 us\n"));
}

TEST(ExplanationTable, TellsWhatAVFormBeginsWith) {
  EXPECT_THAT(explanation_table(R"({"algorithm":"star","reason":"r","candidates":[],)"
                                R"("agreement":{"algorithm":"node","bytes":64,"steps":1,"time_us":0.25}})"),
              HasSubstr("    before: counts are compared by an allgather of 64 bytes (node), 0.250 us\n"));
  EXPECT_THAT(explanation_table(kPlain), Not(HasSubstr("before:")));
}

std::string with_ways(const std::string& found) {
  return R"({"algorithm":"node","reason":"r","candidates":[],"lines":{"plain_ns":0.5,"claimed_ns":0.25,"streamed_ns":0.1},)"
         R"("host_stages":[{"stage":0,"collective":"allreduce","unit_bytes":65536,"begins_with":1,"ways":["two_shot","pull, streamed"],)"
         R"("found":[)" +
         found + "]}]}";
}

TEST(ExplanationTable, ListsWays) {
  const std::string table = explanation_table(with_ways(""));
  EXPECT_THAT(table, HasSubstr("    ways of stage 0, allreduce of 65536 bytes:\n         0 two_shot\n"
                               "      *  1 pull, streamed\n"));
  EXPECT_THAT(table, HasSubstr("lines between cores: 0.5 ns a byte, claimed 0.25, streamed 0.1\n"));
}

TEST(ExplanationTable, TellsWhatCallsHaveFoundOut) {
  const std::string table = explanation_table(
      with_ways(R"({"op":"sum","buffers":"ordinary","calls":99,"in_use":1,"chosen_at":41,"settled":true,)"
                R"("lost_calls":12.5,"median_us":[null,40.25]})"));
  EXPECT_THAT(table, HasSubstr("sum, ordinary buffers, 99 calls: in use is way 1 since call 41, settled; trying has "
                               "cost as much as 12.5 calls\n"));
  EXPECT_THAT(table, HasSubstr("         0      not tried     two_shot\n"));
  EXPECT_THAT(table, HasSubstr("      *  1         40.250 us  pull, streamed\n"));
}

TEST(ExplanationTable, PrintsWhatItDoesNotUnderstandAsItIs) { EXPECT_EQ(explanation_table("none"), "none\n"); }

}  // namespace
}  // namespace ccom::bench
