// SPDX-License-Identifier: Apache-2.0
//
// CCOM_TUNING_SAVE and CCOM_TUNING: what the calls of one job have found out, those of the next one begin with, from a
// file or from the user's cache; what does not fit is ignored, and what cannot be written hurts nobody.
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/harness/environment.h"
#include "tests/harness/folder.h"
#include "tests/harness/world.h"

namespace ccom {
namespace {

using nlohmann::json;

constexpr size_t kCount = 1 << 14;

class Learning : public testing::Test {
 protected:
  // A job that makes so many calls; then, of its last rank, the one stage of a call that makes count elements.
  static json run(int ranks, int calls, size_t count = kCount) {
    json stage;
    with_ranks(ranks, [&](int rank, ccomComm_t comm) {
      std::vector<float> input(kCount, 1), output(kCount);
      for (int i = 0; i < calls; ++i)
        ASSERT_OK(ccomAllReduce(input.data(), output.data(), kCount, ccomFloat32, ccomSum, comm, nullptr));
      std::string text(1 << 16, '\0');
      size_t length = text.size();
      ASSERT_OK(ccomExplain(comm, "allreduce", count, ccomFloat32, -1, text.data(), &length));
      if (rank == ranks - 1) stage = json::parse(text.c_str(), nullptr, false)["host_stages"][0];
    });
    return stage;
  }

  static std::string first_way(const json& stage) { return stage["ways"][stage["begins_with"].get<size_t>()]; }

  // The same as run(), and what is logged about the tuning file.
  static json run_logged(int ranks, int calls, std::vector<std::string>* lines) {
    ccomSetLogCallback(
        [](ccomLogLevel_t level, const char* message, void* user) {
          if (level == ccomLogDebug) return;
          if (std::strstr(message, "tuning file") != nullptr || std::strstr(message, "CCOM_TUNING_SAVE") != nullptr)
            static_cast<std::vector<std::string>*>(user)->emplace_back(message);
        },
        lines);
    const json stage = run(ranks, calls);
    ccomSetLogCallback(nullptr, nullptr);
    return stage;
  }

  json read() const { return json::parse(std::ifstream(path()), nullptr, false); }
  // Saves what two ranks have found out, and makes it say that `way` is the fastest.
  void learn(const std::string& way) const {
    saved_.set(path().c_str());
    run(2, 50);
    saved_.set("off");
    json file = read();
    ASSERT_EQ(file["ways"]["kinds"].size(), 1U) << file;
    file["ways"]["kinds"][0]["in_use"] = way;
    std::ofstream(path()) << file;
    read_.set(path().c_str());
  }
  std::string path() const { return folder_ / "ways.json"; }

  const TemporaryFolder folder_;
  const ScopedVariable read_{"CCOM_TUNING", nullptr}, saved_{"CCOM_TUNING_SAVE", "off"};
};

TEST_F(Learning, IsSavedWhenACommunicatorEnds) {
  saved_.set(path().c_str());
  const json stage = run(2, 100);
  const json file = read();
  ASSERT_TRUE(file.is_object());
  EXPECT_TRUE(file["ways"]["processor"].is_string());
  EXPECT_TRUE(file["ways"]["version"].is_string());
  ASSERT_EQ(file["ways"]["kinds"].size(), 1U);
  const json& kind = file["ways"]["kinds"][0];
  EXPECT_EQ(kind["stage"], "allreduce");
  EXPECT_EQ(kind["call"], "allreduce float32 sum");
  EXPECT_EQ(kind["buffers"], stage["found"][0]["buffers"]);
  EXPECT_EQ(kind["ranks"], 2);
  EXPECT_EQ(kind["unit_bytes"], kCount * sizeof(float));
  EXPECT_EQ(kind["calls"], stage["found"][0]["calls"]);
  EXPECT_EQ(kind["in_use"], stage["ways"][stage["found"][0]["in_use"].get<size_t>()]);
  EXPECT_FALSE(kind["median_us"].empty());
  for (const json& median : kind["median_us"]) EXPECT_GT(median["us"].get<double>(), 0);
}

TEST_F(Learning, IsWhereTheNextJobsCallsBegin) {
  const json stage = run(2, 0);
  ASSERT_GT(stage["ways"].size(), 1U);
  // Without a file calls begin as speeds say that were just measured: rarely with results stored past the caches.
  const std::string learned = stage["ways"][1];
  learn(learned);
  // Lines are measured anew each time, by which ways are put in order.
  json again = run(2, 3);
  EXPECT_EQ(first_way(again), learned);
  EXPECT_EQ(again["found"][0]["in_use"], again["begins_with"]);
  EXPECT_EQ(again["found"][0]["chosen_at"], 0);
  again = run(2, 0, 2 * kCount);
  EXPECT_EQ(first_way(again), learned) << "of a size just above";
  EXPECT_NE(first_way(run(2, 0, kCount - 1)), learned) << "smaller";
  EXPECT_NE(first_way(run(3, 3)), learned) << "of other ranks";
}

TEST_F(Learning, OfAWayThatDoesNotExistIsIgnored) {
  learn("a way of tomorrow");
  std::vector<std::string> lines;
  const json stage = run_logged(2, 3, &lines);
  // Of these buffers, which are within reach; what is explained for others may begin with another way.
  EXPECT_EQ(stage["found"][0]["chosen_at"], 0);
  EXPECT_LT(stage["found"][0]["in_use"], stage["ways"].size());
  EXPECT_THAT(lines, testing::Contains(HasSubstr("'a way of tomorrow' does not exist here and is ignored")));
}

TEST_F(Learning, OfHostsOfOtherRanksIsIgnored) {
  learn("a way of tomorrow");
  std::vector<std::string> lines;
  run_logged(3, 3, &lines);
  EXPECT_THAT(lines, testing::ElementsAre(HasSubstr("not of hosts of 3 ranks and are ignored")));
}

TEST_F(Learning, IsReadAndSavedInOneFile) {
  learn("a way of tomorrow");
  saved_.set(path().c_str());
  run(2, 50);
  run(3, 50);
  const json kinds = read()["ways"]["kinds"];
  ASSERT_EQ(kinds.size(), 2U) << kinds;
  EXPECT_NE(kinds[0]["in_use"], "a way of tomorrow");
  EXPECT_EQ(kinds[0]["ranks"], 2);
  EXPECT_EQ(kinds[1]["ranks"], 3);
}

TEST_F(Learning, ThatCannotBeSavedHurtsNobody) {
  saved_.set((folder_ / "none/ways.json").c_str());
  std::vector<std::string> lines;
  run_logged(2, 50, &lines);  // destroys its communicators with success
  EXPECT_THAT(lines, testing::ElementsAre(HasSubstr(": not saved: ")));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "none"));
}

TEST_F(Learning, IsNotSavedWithoutCallsThatLearn) {
  saved_.set(path().c_str());
  run(2, 0);
  EXPECT_FALSE(std::filesystem::exists(path()));
}

class Cache : public Learning {
 protected:
  Cache() { saved_.set(nullptr); }

  // The one file; empty: there is none.
  std::string file() const {
    std::vector<std::string> all;
    std::error_code none;
    for (const auto& entry : std::filesystem::directory_iterator(folder_ / "ccom/ways", none))
      all.push_back(entry.path());
    EXPECT_LE(all.size(), 1U);
    return all.empty() ? "" : all[0];
  }
  json contents() const { return json::parse(std::ifstream(file()), nullptr, false); }

  const ScopedVariable place_{"XDG_CACHE_HOME", folder_.path().c_str()};
};

TEST_F(Cache, IsWhereJobsBeginWithoutBeingAsked) {
  const json stage = run(2, 50);
  ASSERT_GT(stage["ways"].size(), 1U);
  json learned = contents();
  ASSERT_EQ(learned["ways"]["kinds"].size(), 1U) << learned;
  EXPECT_EQ(learned["ways"]["kinds"][0]["call"], "allreduce float32 sum");
  learned["ways"]["kinds"][0]["in_use"] = stage["ways"][1];
  std::ofstream(file()) << learned;
  EXPECT_EQ(first_way(run(2, 0)), stage["ways"][1]);
  run(3, 50);
  EXPECT_EQ(contents()["ways"]["kinds"].size(), 2U) << "of hosts of two and of three ranks";
}

TEST_F(Cache, HoldsTheProcessorsFiguresAfterSomeStarts) {
  run(2, 50);
  json learned = contents();
  EXPECT_LE(learned["ways"]["starts"], 1);  // 0: another test of this process has measured them
  learned["ways"]["starts"] = 5;
  learned["ways"]["own_memory"]["far_load_ns"] = 0.125;
  const auto far_load_ns = [] {
    double ns = 0;
    with_ranks(2, [&ns](int rank, ccomComm_t comm) {
      std::string text(1 << 16, '\0');
      size_t length = text.size();
      ASSERT_OK(ccomExplain(comm, "allreduce", kCount, ccomFloat32, -1, text.data(), &length));
      if (rank == 1) ns = json::parse(text.c_str(), nullptr, false)["own_memory"]["far_load_ns"];
    });
    return ns;
  };
  std::ofstream(file()) << learned;
  EXPECT_EQ(far_load_ns(), 0.125);
  learned["ways"]["processor"] = "another";
  std::ofstream(path()) << learned;
  read_.set(path().c_str());
  EXPECT_NE(far_load_ns(), 0.125) << "from a file of another machine";
}

TEST_F(Cache, IsNeitherReadNorWrittenWhereItIsOff) {
  for (const bool tries : {true, false}) {
    saved_.set(tries ? "off" : "auto");
    read_.set(tries ? nullptr : "off");
    run(2, 50);
    EXPECT_EQ(file(), "");
  }
}

TEST_F(Cache, ThatNobodyCanReadIsIgnoredAndWrittenAnew) {
  run(2, 50);
  std::ofstream(file()) << "{\"ways\": 7";
  std::vector<std::string> lines;
  run_logged(2, 50, &lines);
  EXPECT_THAT(lines, testing::IsEmpty());
  EXPECT_EQ(contents()["ways"]["kinds"].size(), 1U);
}

TEST_F(Cache, ThatCannotBeWrittenIsNobodysWorry) {
  const ScopedVariable nowhere("XDG_CACHE_HOME", "/proc/none");
  std::vector<std::string> lines;
  run_logged(2, 50, &lines);
  EXPECT_THAT(lines, testing::IsEmpty());
}

}  // namespace
}  // namespace ccom
