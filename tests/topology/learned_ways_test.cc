// SPDX-License-Identifier: Apache-2.0
//
// What calls have found out, in files: it comes back as it was, serves similar calls and no others, and what a file
// holds besides is kept.
#include "topology/learned_ways.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>

#include "tests/harness/folder.h"
#include "tests/harness/results.h"
#include "topology/topology.h"

namespace ccom {
namespace {

using testing::HasSubstr;

LearnedKind sums(uint64_t unit_bytes, const std::string& in_use) {
  return {.stage = "allreduce",
          .call = "allreduce float32 sum",
          .buffers = "ordinary",
          .unit_bytes = unit_bytes,
          .in_use = in_use,
          .calls = 300,
          .median_us = {{"two_shot", 41.25}, {in_use, 30}}};
}

LearnedWays two_kinds() {
  return {"some processor", "1.2.3", {sums(65536, "pull"), sums(1 << 20, "two_shot, streamed")}};
}

TEST(LearnedWays, ComeBackFromATuningFile) {
  const Calibration saved{.post_ns = 3, .ways = two_kinds()};
  const Calibration read = value_of(calibration_from_json(to_json(saved)));
  EXPECT_EQ(read, saved);
  EXPECT_EQ(hash_of(read.ways), hash_of(saved.ways));
  EXPECT_NE(hash_of(read.ways), hash_of(LearnedWays()));
}

TEST(LearnedWays, AreRefusedWithTheKeyThatIsWrong) {
  const auto refusal = [](std::string text, const std::string& part, const std::string& other) {
    text.replace(text.find(part), part.size(), other);
    return message_of(calibration_from_json(text));
  };
  const std::string text = to_json(Calibration{.ways = two_kinds()});
  EXPECT_THAT(refusal(text, R"("ranks":2)", R"("ranks":-2)"), HasSubstr("tuning.ways.kinds[0].ranks"));
  EXPECT_THAT(refusal(text, R"("in_use":"pull")", R"("used":"pull")"),
              HasSubstr("tuning.ways.kinds[0].in_use: missing"));
  EXPECT_THAT(refusal(text, R"("us":41.25)", R"("us":"fast")"), HasSubstr("tuning.ways.kinds[0].median_us[0].us"));
  EXPECT_THAT(refusal(text, R"("version")", R"("versoin")"), HasSubstr("tuning.ways.version: missing"));
}

TEST(LearnedWays, ServeCallsOfTheirSizeAndSomewhatLargerOnes) {
  const LearnedWays known = two_kinds();
  const auto way_of = [&](uint64_t bytes) {
    const LearnedKind* const found = nearest(known, sums(bytes, ""));
    return found == nullptr ? "none" : found->in_use;
  };
  EXPECT_EQ(way_of(65535), "none");
  EXPECT_EQ(way_of(65536), "pull");
  EXPECT_EQ(way_of(4 * 65536), "pull");
  EXPECT_EQ(way_of(8 * 65536), "none");
  EXPECT_EQ(way_of((1 << 20) - 4), "none");
  EXPECT_EQ(way_of(1 << 20), "two_shot, streamed");
  EXPECT_EQ(way_of((1 << 20) + 4), "two_shot, streamed");
}

TEST(LearnedWays, ServeNoOtherHostsStagesOrBuffers) {
  const LearnedWays known = two_kinds();
  LearnedKind asked = sums(65536, "");
  asked.ranks = 4;
  EXPECT_EQ(nearest(known, asked), nullptr);
  asked = sums(65536, "");
  asked.cores = 1;
  EXPECT_EQ(nearest(known, asked), nullptr) << "of two ranks that share one";
  asked = sums(65536, "");
  asked.stage = "reduce";
  EXPECT_EQ(nearest(known, asked), nullptr);
  asked = sums(65536, "");
  asked.units = 2;
  EXPECT_EQ(nearest(known, asked), nullptr);
  asked = sums(65536, "");
  asked.buffers = "mapped 1";
  EXPECT_EQ(nearest(known, asked), nullptr);
  asked.buffers.clear();
  EXPECT_EQ(nearest(known, asked), known.kinds.data()) << "not known yet";
}

TEST(LearnedWays, OfTheSameCallComeFirst) {
  LearnedWays known = two_kinds();
  known.kinds.push_back(sums(100'000, "one_shot"));
  known.kinds.back().call = "allreduce int8 max";
  EXPECT_EQ(nearest(known, sums(120'000, ""))->in_use, "pull") << "though the other one is of a size that is nearer";
  LearnedKind asked = sums(120'000, "");
  asked.call = "allreduce float64 sum";
  EXPECT_EQ(nearest(known, asked)->in_use, "one_shot");
}

class LearnedFile : public testing::Test {
 protected:
  std::string path() const { return folder_ / "ways.json"; }
  LearnedWays saved() const { return read_calibration(path())->ways; }

  const TemporaryFolder folder_;
};

TEST_F(LearnedFile, IsMadeAndHoldsWhatWasSaved) {
  ASSERT_TRUE(save_ways(path(), two_kinds()).is_ok());
  EXPECT_EQ(saved(), two_kinds());
  EXPECT_EQ(entries_of(folder_.path()), 1) << "and nothing else is left";
}

TEST_F(LearnedFile, KeepsSpeedsAndWhatIsKnownOfOtherCalls) {
  std::ofstream(path()) << R"({"memory": {"latency_ns": 700, "bytes_per_second": 9e9}, "measured_on": "here"})";
  ASSERT_TRUE(save_ways(path(), two_kinds()).is_ok());
  ASSERT_TRUE(save_ways(path(), {"some processor", "1.2.3", {sums(65536, "one_shot"), sums(4096, "pull")}}).is_ok());
  const Calibration read = value_of(read_calibration(path()));
  EXPECT_EQ(read.memory, (LinkSpeed{700, 9e9}));
  EXPECT_EQ(read.measured_on, "here");
  EXPECT_EQ(read.ways.kinds,
            (std::vector{sums(1 << 20, "two_shot, streamed"), sums(65536, "one_shot"), sums(4096, "pull")}));
}

TEST_F(LearnedFile, ForgetsWhatAnotherProcessorOrVersionHasFoundOut) {
  for (const LearnedWays& other : {LearnedWays{"another", "1.2.3", {sums(4096, "pull")}},
                                   LearnedWays{"some processor", "1.2.4", {sums(4096, "pull")}}}) {
    ASSERT_TRUE(save_ways(path(), two_kinds()).is_ok());
    ASSERT_TRUE(save_ways(path(), other).is_ok());
    EXPECT_EQ(saved(), other);
  }
}

TEST_F(LearnedFile, ThatIsNoTuningFileIsLeftAsItIs) {
  std::ofstream(path()) << "precious";
  const Status status = save_ways(path(), two_kinds());
  EXPECT_EQ(status.code(), Code::ConfigError);
  EXPECT_THAT(status.message(), HasSubstr(path()));
  EXPECT_EQ(contents_of(path()), "precious");
}

TEST_F(LearnedFile, ThatCannotBeWrittenIsAnErrorWithItsName) {
  const std::string nowhere = folder_ / "none/ways.json";
  const Status status = save_ways(nowhere, two_kinds());
  EXPECT_FALSE(status.is_ok());
  EXPECT_THAT(status.message(), HasSubstr(nowhere));
}

class WaysCache : public LearnedFile {
 protected:
  std::string cache() const { return folder_ / "user/ccom/ways"; }
  LearnedWays cached() const { return cached_ways(cache(), "some processor", "1.2.3"); }
  void keep(LearnedWays found) const { ASSERT_TRUE(cache_ways(cache(), std::move(found)).is_ok()); }
  std::filesystem::path file() const { return std::filesystem::directory_iterator(cache())->path(); }
  // What is cached once `change` was made.
  LearnedWays after(const std::function<void()>& change) const {
    keep(two_kinds());
    change();
    return cached();
  }
};

LearnedWays without_medians(LearnedWays ways) {
  for (LearnedKind& kind : ways.kinds) kind.median_us.clear();
  return ways;
}

TEST_F(WaysCache, GivesBackWhatWasKept) {
  EXPECT_EQ(cached(), LearnedWays()) << "nothing was";
  keep(two_kinds());
  EXPECT_EQ(cached(), without_medians(two_kinds()));
  keep({"some processor", "1.2.3", {sums(65536, "one_shot")}});
  EXPECT_EQ(cached().kinds.back().in_use, "one_shot");
  EXPECT_EQ(cached().kinds.size(), 2U);
}

TEST_F(WaysCache, IsForOneUserProcessorAndVersion) {
  keep(two_kinds());
  EXPECT_EQ(cached_ways(cache(), "another", "1.2.3"), LearnedWays());
  EXPECT_EQ(cached_ways(cache(), "some processor", "1.2.4"), LearnedWays());
  const auto others = std::filesystem::perms::group_all | std::filesystem::perms::others_all;
  for (const auto& path : {std::filesystem::path(cache()), file()})
    EXPECT_EQ(std::filesystem::status(path).permissions() & others, std::filesystem::perms::none) << path;
}

TEST_F(WaysCache, ThatOthersCouldHaveWrittenIsIgnored) {
  const auto writable = [](const std::filesystem::path& path) {
    std::filesystem::permissions(path, std::filesystem::perms::group_write, std::filesystem::perm_options::add);
  };
  EXPECT_EQ(after([&] { writable(file()); }), LearnedWays());
  writable(cache());
  EXPECT_FALSE(cache_ways(cache(), {"some processor", "1.2.3", {sums(4096, "pull")}}).is_ok());
}

TEST_F(WaysCache, IsReadThroughNoLink) {
  EXPECT_EQ(after([&] {
              const std::filesystem::path path = file();
              std::filesystem::rename(path, path.string() + ".elsewhere");
              std::filesystem::create_symlink(path.string() + ".elsewhere", path);
            }),
            LearnedWays());
}

TEST_F(WaysCache, ThatCannotBeReadIsWrittenAnew) {
  EXPECT_EQ(after([&] { std::ofstream(file()) << "precious"; }), LearnedWays());
  keep(two_kinds());
  EXPECT_EQ(cached(), without_medians(two_kinds()));
}

TEST_F(WaysCache, IsNotWrittenForWhatItHolds) {
  keep(two_kinds());
  const auto written = std::filesystem::last_write_time(file()) - std::chrono::hours(1);
  std::filesystem::last_write_time(file(), written);
  LearnedWays again = two_kinds();
  again.kinds[0].calls += 1000;
  keep(again);
  EXPECT_EQ(std::filesystem::last_write_time(file()), written);
  again.kinds[0].in_use = "two_shot";
  keep(again);
  EXPECT_NE(std::filesystem::last_write_time(file()), written);
}

TEST_F(WaysCache, ForgetsTheFirstOfTooManyKinds) {
  for (uint64_t i = 1; i <= 150; ++i) keep({"some processor", "1.2.3", {sums(64 * i, "pull")}});
  ASSERT_EQ(cached().kinds.size(), 128U);
  EXPECT_EQ(cached().kinds.front().unit_bytes, 64U * 23);
}

TEST_F(WaysCache, HoldsTheLeastOfWhatSomeStartsHaveMeasured) {
  for (int start = 1; start <= kEnoughStarts + 2; ++start)
    keep({"some processor", "1.2.3", {}, {.far_load_ns = 0.5 / start, .far_store_ns = 0.25 * start}, 1});
  EXPECT_EQ(cached().starts, kEnoughStarts);
  EXPECT_EQ(cached().own.far_load_ns, 0.5 / kEnoughStarts);
  EXPECT_EQ(cached().own.far_store_ns, 0.25);
  EXPECT_EQ(cached().own.read_byte_ns, 0);
}

}  // namespace
}  // namespace ccom
