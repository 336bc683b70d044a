// SPDX-License-Identifier: Apache-2.0
//
// The command line: sizes as people write them, sweeps, lists, and wrong words refused with a text that names them.
#include "bench/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ccom::bench {
namespace {

using launch::ExitCode;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

Options parsed(const std::vector<std::string>& arguments) {
  Options options;
  std::string help;
  const launch::Outcome outcome = parse_options(arguments, &options, &help);
  EXPECT_TRUE(outcome.ok()) << outcome.text;
  return options;
}

std::string refusal(const std::vector<std::string>& arguments) {
  Options options;
  std::string help;
  const launch::Outcome outcome = parse_options(arguments, &options, &help);
  EXPECT_EQ(outcome.code, ExitCode::Usage);
  return outcome.text;
}

TEST(ParseSize, ReadsBytesAndBothKindsOfUnits) {
  EXPECT_EQ(parse_size("0"), 0u);
  EXPECT_EQ(parse_size("3000"), 3000u);
  EXPECT_EQ(parse_size("64K"), 65536u);
  EXPECT_EQ(parse_size("1M"), 1048576u);
  EXPECT_EQ(parse_size("1MB"), 1000000u);
  EXPECT_EQ(parse_size("2KB"), 2000u);
  EXPECT_EQ(parse_size("1.5K"), 1536u);
  EXPECT_EQ(parse_size("5G"), 5368709120u);
  EXPECT_EQ(parse_size("1T"), size_t{1} << 40);
}

TEST(ParseSize, RefusesWhatIsNoSize) {
  for (const char* text :
       {"", "K", "-1", "8X", "8 K", "1KiB", "1.3", "0x10", "1e3", "inf", "9999999T", "64k ", "1BK"}) {
    EXPECT_EQ(parse_size(text), std::nullopt) << text;
  }
}

TEST(SizesOf, GrowsByAFactorUpToTheEnd) {
  EXPECT_THAT(sizes_of({.begin = 8, .end = 600, .factor = 8}), ElementsAre(8, 64, 512));
  EXPECT_THAT(sizes_of({.begin = 8, .end = 512, .factor = 8}), ElementsAre(8, 64, 512));
}

TEST(SizesOf, GrowsByAStepWhenThereIsOne) {
  EXPECT_THAT(sizes_of({.begin = 10, .end = 35, .factor = 2, .step = 10}), ElementsAre(10, 20, 30));
}

TEST(SizesOf, EndsThoughTheFactorIsTooSmallToMoveASize) {
  EXPECT_THAT(sizes_of({.begin = 0, .end = 4, .factor = 1.1}), ElementsAre(0, 1, 2, 3, 4));
}

TEST(ParseOptions, KnowsDefaults) {
  const Options options = parsed({"allreduce"});
  EXPECT_THAT(options.collectives, ElementsAre(Collective::AllReduce));
  EXPECT_EQ(options.sizes.front(), 8u);
  EXPECT_EQ(options.sizes.back(), size_t{16} << 20);
  EXPECT_TRUE(options.in_place && options.out_of_place);
  EXPECT_EQ(options.check, Check::Edge);
  EXPECT_EQ(options.root, 0);
  EXPECT_TRUE(options.process_counts.empty());
}

TEST(ParseOptions, TakesListsAndAll) {
  const Options options = parsed({"all_gather,sendrecv", "-np", "2,4", "-d", "bf16,f32", "-o", "all", "-r", "all",
                                  "--place", "in", "--sizes", "1K,3000"});
  EXPECT_THAT(options.collectives, ElementsAre(Collective::AllGather, Collective::SendRecv));
  EXPECT_THAT(options.process_counts, ElementsAre(2, 4));
  EXPECT_THAT(options.types, ElementsAre(ccomBfloat16, ccomFloat32));
  EXPECT_THAT(options.reductions, SizeIs(13));
  EXPECT_EQ(options.root, std::nullopt);
  EXPECT_FALSE(options.out_of_place);
  EXPECT_THAT(options.sizes, ElementsAre(1024, 3000));
}

TEST(ParseOptions, TakesTheNamesOfTypesThatPeopleUse) {
  EXPECT_THAT(
      parsed({"allreduce", "-d", "float,fp32,fp64,double,half,fp16,int,long"}).types,
      ElementsAre(ccomFloat32, ccomFloat32, ccomFloat64, ccomFloat64, ccomFloat16, ccomFloat16, ccomInt32, ccomInt64));
}

TEST(ParseOptions, NamesTheWordThatItDoesNotKnow) {
  EXPECT_THAT(refusal({"alreduce"}), HasSubstr("alreduce"));
  EXPECT_THAT(refusal({"allreduce", "-d", "float7"}), HasSubstr("float7 is not known; there are all, int8, uint8"));
  EXPECT_THAT(refusal({"allreduce", "-o", "mean"}), HasSubstr("mean"));
  EXPECT_THAT(refusal({"allreduce", "--sizes", "8,9X"}), HasSubstr("9X"));
  EXPECT_THAT(refusal({"allreduce", "-f", "1"}), HasSubstr("-f 1"));
  EXPECT_THAT(refusal({"allreduce", "-b", "2K", "-e", "1K"}), HasSubstr("2048"));
  EXPECT_THAT(refusal({"allreduce", "-r", "first"}), HasSubstr("first"));
  EXPECT_FALSE(refusal({"allreduce", "--no-such-flag"}).empty());
  EXPECT_FALSE(refusal({}).empty());
}

TEST(ParseOptions, OverlapNeedsAStreamAndSingleCalls) {
  EXPECT_FALSE(parsed({"allreduce"}).stream);
  EXPECT_TRUE(parsed({"allreduce", "--overlap"}).stream);
  EXPECT_THAT(refusal({"allreduce", "--overlap", "--mode", "throughput"}), HasSubstr("--overlap"));
}

TEST(ParseOptions, GivesHelp) {
  Options options;
  std::string help;
  EXPECT_TRUE(parse_options({"--help"}, &options, &help).ok());
  EXPECT_THAT(help, HasSubstr("--hostid-split"));
}

TEST(ParseOptions, NeedsAnOperationUnlessItTunes) {
  EXPECT_THAT(refusal({}), HasSubstr("op is required"));
  EXPECT_EQ(parsed({"--tune", "speeds.json", "-np", "3"}).tune, "speeds.json");
  for (const char* other : {"allreduce", "--explain", "--topology=ring:4"}) {
    EXPECT_THAT(refusal({"--tune", "speeds.json", other}), HasSubstr("--tune measures this machine")) << other;
  }
}

TEST(ParseOptions, ExplainsATopologyWithoutRanks) {
  EXPECT_TRUE(is_offline(parsed({"allreduce", "--explain", "--topology", "torus:4x4"})));
  EXPECT_FALSE(is_offline(parsed({"allreduce", "--explain", "-np", "4"})));
  EXPECT_FALSE(is_offline(parsed({"allreduce", "--topology", "torus:4x4"})));
  for (const char* ranks : {"--np=4", "--threads", "--hostid-split=2", "--algo=ring", "--transport=tcp"}) {
    EXPECT_THAT(refusal({"allreduce", "--explain", "--topology", "torus:4x4", ranks}),
                HasSubstr("takes the ranks from the topology"))
        << ranks;
  }
}

TEST(Options, AreCompletedByKnownShellsOnly) {
  Options options;
  std::string script;
  EXPECT_TRUE(parse_options({"--completion", "bash"}, &options, &script).ok());
  EXPECT_THAT(script, HasSubstr("complete -F _ccom_bench ccom-bench"));
  EXPECT_THAT(refusal({"--completion", "csh"}), HasSubstr("csh"));
  EXPECT_THAT(refusal({"--completion"}), HasSubstr("--completion"));
}

TEST(ParseOptions, KnowsSkewsAndGroups) {
  EXPECT_EQ(parsed({"allgatherv"}).skew, Skew::Linear);
  EXPECT_EQ(parsed({"allgatherv", "--skew", "one"}).skew, Skew::One);
  EXPECT_THAT(refusal({"allgatherv", "--skew", "two"}), HasSubstr("two"));
  EXPECT_EQ(calls_together(parsed({"allreduce"})), 1);
  EXPECT_EQ(parsed({"allreduce", "--group", "1"}).group, 1);
  EXPECT_EQ(parsed({"allreduce", "--group", "8"}).group, 8);
  EXPECT_THAT(refusal({"allreduce", "--group", "0"}), HasSubstr("--group"));
  EXPECT_THAT(refusal({"allreduce", "--group", "2", "--overlap"}), HasSubstr("not with --group"));
  EXPECT_THAT(parsed({"allreduce", "-o", "user,user-ordered"}).reductions,
              ElementsAre(Reduction::User, Reduction::UserOrdered));
}

}  // namespace
}  // namespace ccom::bench
