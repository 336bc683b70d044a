// SPDX-License-Identifier: Apache-2.0
//
// Recordings of real processes. After kill -9 of all of them at any moment every file is read, every call in it is one
// that was made, and none is missing before the last; who is late, or does not come, is named with the reason.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <random>
#include <thread>

#include "tests/harness/effort.h"
#include "tests/harness/folder.h"
#include "tests/harness/processes.h"
#include "trace/differences.h"
#include "trace/recorded_job.h"
#include "trace/stragglers.h"

namespace ccom {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::HasSubstr;

const std::vector<int> kAll{0, 1, 2, 3};

class Recordings : public testing::Test {
 protected:
  Job start(std::vector<std::string> arguments, const Job::Environment& more = {}) const {
    return {"recording_program", 4, std::move(arguments), [this, more](int rank) {
              Job::Environment environment = more;
              environment["CCOM_RECORD"] = folder_;
              environment["CCOM_RECORD_BYTES"] = "1048576";
              if (const auto host = more.find("hosts"); host != more.end()) {
                environment.erase("hosts");
                environment["CCOM_HOSTID"] = "host" + std::to_string(rank / 2);
              }
              return environment;
            }};
  }
  RecordedJob only_job(size_t files = 4) const {
    std::vector<std::string> refused;
    auto jobs = read_jobs({folder_}, refused);
    EXPECT_THAT(refused, ElementsAre());
    if (!jobs || jobs->size() != 1) {
      ADD_FAILURE() << (jobs ? std::to_string(jobs->size()) + " jobs" : jobs.error().message());
      return {};
    }
    EXPECT_EQ((*jobs)[0].files.size(), files);
    return std::move((*jobs)[0]);
  }
  void forget() const {
    for (const auto& entry : fs::directory_iterator(folder_)) fs::remove(entry.path());
  }

  const TemporaryFolder place_{fs::current_path()};
  const std::string& folder_ = place_.path();
};

// One writer per communicator: its numbers follow one another, and so do its arguments. But for records in which a
// thread stood still until another one came there a lap later: these are known as torn.
void expect_consistent(const RecordedJob& job, const RecordedGroup& group) {
  for (const auto& [rank, recorded] : group.ranks) {
    const RecordedCall* before = nullptr;
    uint64_t missing = 0;
    for (const RecordedCall* call : recorded.calls) {
      const CallKind kind = parts_of(call->call.kind);
      EXPECT_TRUE(kind.collective == Collective::AllReduce || kind.collective == Collective::Broadcast ||
                  kind.collective == Collective::AllGather)
          << text_of(call->call);
      // The first to be killed ends the last call of the others.
      EXPECT_TRUE(call->code == Code::Ok || (call->code == Code::RemoteError && call == recorded.calls.back()));
      EXPECT_GE(call->ended_ns.value_or(INT64_MAX), call->begun_ns);
      if (before != nullptr) {
        ASSERT_GT(call->call.number, before->call.number) << "rank " << rank;
        missing += call->call.number - before->call.number - 1;
        ASSERT_TRUE(before->ended_ns) << "rank " << rank << ", #" << before->call.number;
        if (missing == 0 && group.nranks == 4 && kind.collective == Collective::AllReduce &&
            before->call.kind == call->call.kind) {
          ASSERT_EQ(call->call.count, before->call.count % 50 + 1);
        }
      }
      before = call;
    }
    EXPECT_LE(missing, job.files[recorded.file].torn) << "rank " << rank;
  }
}

TEST_F(Recordings, AreReadableAfterKillsOfAllAtAnyMoment) {
  const size_t points = count_from("CCOM_TEST_POINTS", 6, 50);
  const uint64_t seed = test_seed();
  std::printf("CCOM_TEST_SEED=%llu\n", static_cast<unsigned long long>(seed));
  std::mt19937_64 random(seed);
  for (size_t point = 0; point < points; ++point) {
    forget();
    Job job = start({"endless"});
    ASSERT_TRUE(job.wait_for("ready", kAll, milliseconds(60000))) << job.transcript();
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 100'000));
    for (const int rank : kAll) job.kill(rank);
    ASSERT_TRUE(job.finish(milliseconds(20000)));
    const RecordedJob recorded = only_job();
    ASSERT_EQ(recorded.groups.size(), 5u);  // of all; twice two parts
    EXPECT_EQ(recorded.groups[0].nranks, 4);
    for (const RecordedGroup& group : recorded.groups) expect_consistent(recorded, group);
    for (const Recording& file : recorded.files) EXPECT_LE(file.torn, 3u);  // writers
    const auto& world = recorded.groups[0];
    for (const auto& [rank, part] : world.ranks) {
      ASSERT_GT(part.calls.size(), 0u);
      EXPECT_LE(world.last_number() - part.calls.back()->call.number, 1u) << "rank " << rank;
    }
    for (const RecordedGroup& group : recorded.groups) EXPECT_EQ(group.parent, group.nranks == 2 ? world.number : 0);
  }
}

TEST_F(Recordings, AreReadOrRefusedAfterKillsAtTheStart) {
  std::mt19937_64 random(test_seed());
  const size_t points = count_from("CCOM_TEST_POINTS", 6, 50);
  for (size_t point = 0; point < points; ++point) {
    forget();
    Job job = start({"endless"});
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 60'000));
    for (const int rank : kAll) job.kill(rank);
    ASSERT_TRUE(job.finish(milliseconds(20000)));
    for (const auto& entry : fs::directory_iterator(folder_)) {
      const auto found = read_recording(entry.path().string());
      EXPECT_TRUE(found || !found.error().message().empty());
    }
  }
}

TEST_F(Recordings, NameTheRankThatIsLateAndTheOneThatHasNotCome) {
  Job job = start({"late", "2"});
  ASSERT_TRUE(job.wait_for("done", kAll, milliseconds(60000))) << job.transcript();
  std::this_thread::sleep_for(milliseconds(1000));  // the last call lasts that long by now
  for (const int rank : kAll) job.kill(rank);
  ASSERT_TRUE(job.finish(milliseconds(20000)));
  const RecordedJob recorded = only_job();
  ASSERT_EQ(recorded.groups.size(), 1u);
  const auto stragglers = find_stragglers(recorded, recorded.groups[0]);
  ASSERT_FALSE(stragglers.empty());
  EXPECT_EQ(stragglers[0].rank, 2);
  EXPECT_GE(stragglers[0].late_ns, 10 * 15'000'000);
  EXPECT_TRUE(stragglers[0].has_not_come);
  ASSERT_FALSE(stragglers[0].places.empty());
  EXPECT_THAT(stragglers[0].places[0].site, HasSubstr("recording_program+0x"));
  for (const Rank rank : {0, 1, 3}) {
    const auto waits_long = [](const RecordedCall* call) {
      return call->waited_for == 2 && call->waited_ns > 5'000'000;
    };
    EXPECT_GE(std::ranges::count_if(recorded.groups[0].ranks.at(rank).calls, waits_long), 2) << "rank " << rank;
  }
  const auto first = first_difference(recorded.groups[0]);
  ASSERT_EQ(first, recorded.groups[0].last_number());
  const ComparedCall call = compare_call(recorded, recorded.groups[0], *first);
  const auto is_missing = [](const auto& part) { return part.state == ComparedCall::State::NotMade; };
  const auto missing = std::ranges::find_if(call.parts, is_missing);
  ASSERT_NE(missing, call.parts.end());
  EXPECT_THAT(missing->ranks, ElementsAre(2));
  EXPECT_GT(missing->longest_ns, 300'000'000);  // the liveness thread says until when the process lived
  // A rank may have begun to wait for another one that came after it.
  const auto waits = [](const auto& part) { return part.state == ComparedCall::State::Inside && part.waits_for == 2; };
  EXPECT_TRUE(std::ranges::any_of(call.parts, waits));
}

TEST_F(Recordings, OfSeveralHostsHaveTheirAlgorithms) {
  Job job = start({"calls", "200"}, {{"hosts", "2"}});
  ASSERT_TRUE(job.wait_for("done", kAll, milliseconds(60000))) << job.transcript();
  ASSERT_TRUE(job.finish(milliseconds(20000)));
  const RecordedJob recorded = only_job();
  uint64_t named = 0;
  for (const Recording& file : recorded.files) {
    for (const RecordedCall& call : file.calls) {
      named += file.texts[call.algorithm].empty() ? 0 : 1;
      EXPECT_LE(call.waited_ns, *call.ended_ns - call.begun_ns + 1000);
    }
  }
  EXPECT_GE(named, 4u * 200);
  EXPECT_NE(recorded.groups[0].topology, "");
  EXPECT_EQ(first_difference(recorded.groups[0]), std::nullopt);
}

TEST_F(Recordings, AFolderThatIsNotThereIsMadeByOneOfTheRanks) {
  fs::remove(folder_);
  Job job = start({"calls", "10"});
  EXPECT_TRUE(job.wait_for("done", kAll, milliseconds(60000))) << job.transcript();
  EXPECT_TRUE(job.finish(milliseconds(20000)));
  EXPECT_EQ(only_job().groups[0].ranks.size(), 4u);
}

TEST_F(Recordings, AFolderThatCannotBeMadeEndsNothing) {
  Job job("recording_program", 4, {"calls", "10"}, [this](int) {
    return Job::Environment{{"CCOM_RECORD", folder_ + "/none/below"}};
  });
  EXPECT_TRUE(job.wait_for("done", kAll, milliseconds(60000))) << job.transcript();
  EXPECT_TRUE(job.finish(milliseconds(20000)));
}

TEST_F(Recordings, AWrongSizeIsAnErrorOfTheStart) {
  Job job("recording_program", 4, {"calls", "10"}, [this](int) {
    return Job::Environment{{"CCOM_RECORD", folder_}, {"CCOM_RECORD_BYTES", "4M"}};
  });
  EXPECT_TRUE(job.wait_for("init 36", kAll, milliseconds(60000))) << job.transcript();
  EXPECT_THAT(job.line(0, "init"), HasSubstr("CCOM_RECORD_BYTES=4M"));
  EXPECT_TRUE(job.finish(milliseconds(20000)));
}

}  // namespace
}  // namespace ccom
