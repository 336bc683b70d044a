// SPDX-License-Identifier: Apache-2.0
//
// T8: malloc fails at the k-th call of a job of two ranks, once or for ever. Every rank ends by itself, with success or
// an error that has a code; nobody is killed, nothing is left. The exceptions are written down in docs/reliability.md:
// libraries that end the process by themselves. So a death is accepted where the innermost function that is not the C
// or C++ runtime's is gRPC's or OpenSSL's; once all have met, in a thread for gRPC's work alone, which ends a moment
// later: no call of the application is below it. How many calls there are is counted first. In 5 of them, drawn by
// CCOM_TEST_SEED; CCOM_TEST_LONG=1: in 2000.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <sstream>

#include "tests/harness/effort.h"
#include "tests/harness/folder.h"
#include "tests/harness/paths.h"
#include "tests/harness/processes.h"

namespace ccom {
namespace {

using std::chrono::milliseconds;

constexpr int kInternalError = 3;  // of ccom.h
constexpr int kNever = 100'000'000;

struct Case {
  std::string transport;
  int victim;
  bool is_ever;
};

// The library in which a killed process was, the runtime's left out; "" if that cannot be said.
std::string culprit(const std::string& killed) {
  std::istringstream words(killed);
  std::string word;
  words >> word >> word;
  while (words >> word) {
    bool is_runtime = false;
    for (const char* runtime :
         {"libc.so", "libstdc++", "libgcc_s", "ld-linux", "libfailing_malloc", "linux-vdso", "libm.so"})
      is_runtime |= word.rfind(runtime, 0) == 0;
    if (!is_runtime) return word;
  }
  return "";
}

bool may_end_the_process(const std::string& library) {
  for (const char* name :
       {"libgrpc", "libgpr", "libabsl", "libcrypto", "libssl", "libprotobuf", "libupb", "libaddress_sorting"})
    if (library.rfind(name, 0) == 0) return true;
  return false;
}

// A std::bad_alloc inside gRPC can make it forget a request. ccom says so and goes on; the connection stays.
bool has_lost_a_request(const std::string& transcript) {
  return transcript.find("gRPC has lost a request") != std::string::npos;
}

Job::Environment environment_for(const Case& test, int rank, int k, const std::string& folder) {
  Job::Environment added{{"TMPDIR", folder},
                         {"XDG_RUNTIME_DIR", folder},
                         {"CCOM_TRANSPORT", test.transport},
                         {"CCOM_INIT_TIMEOUT_MS", "3000"},
                         {"CCOM_TIMEOUT_MS", "3000"}};
  if (test.transport == "tcp") added["CCOM_HOSTID"] = "host" + std::to_string(rank);
  if (rank != test.victim) return added;
  added["LD_PRELOAD"] = program("libfailing_malloc.so");
  added["CCOM_TEST_FAIL_AT"] = std::to_string(k);
  if (test.is_ever) added["CCOM_TEST_FAIL_EVER"] = "1";
  return added;
}

// Of malloc, from the start to the end of a job.
int count_calls(const Case& test) {
  Job job("exhausted_rank", 2, {}, [&](int rank) {
    Job::Environment environment = environment_for(test, rank, kNever, "/tmp");
    // That this one succeeds does not depend on other work.
    environment["CCOM_INIT_TIMEOUT_MS"] = environment["CCOM_TIMEOUT_MS"] = "20000";
    return environment;
  });
  EXPECT_TRUE(job.finish(milliseconds(30000)));
  const std::string ended = job.line(test.victim, "ended 0 ");
  EXPECT_FALSE(ended.empty()) << job.transcript();
  return ended.empty() ? 0 : kNever - std::atoi(ended.c_str() + 8);
}

// "ended CODE LEFT TEXT": no error, or one that somebody can act on.
void check_end(const std::string& ended, const std::string& context) {
  std::istringstream words(ended);
  std::string word, text;
  int code = -1, left = 0;
  words >> word >> code >> left;
  std::getline(words, text);
  if (code == 0) return;
  EXPECT_NE(code, kInternalError) << context << ": " << ended;
  EXPECT_GT(text.size(), 20u) << context << ": an error without a text: " << ended;
}

// What happened to the victim: "code 35", "killed in libgrpc.so.29".
std::string run(const Case& test, int k) {
  const std::string context = test.transport + ", rank " + std::to_string(test.victim) + ", call " + std::to_string(k) +
                              (test.is_ever ? " and all later ones" : "");
  const TemporaryFolder folder;
  std::string outcome;
  {
    Job job("exhausted_rank", 2, {}, [&](int rank) { return environment_for(test, rank, k, folder.path()); });
    EXPECT_TRUE(job.finish(milliseconds(30000))) << context << ": a rank hangs\n" << job.transcript();
    const std::string killed = job.line(test.victim, "killed");
    const std::string ended = job.line(test.victim, "ended");
    if (killed.empty()) {
      EXPECT_FALSE(ended.empty()) << context << ": the rank has ended without a word\n" << job.transcript();
      check_end(ended, context);
      outcome = "code " + ended.substr(std::min<size_t>(6, ended.size()), ended.find(' ', 6) - 6);
      if (!has_lost_a_request(job.transcript())) {
        EXPECT_EQ(job.line(test.victim, "open"), "") << context << ": is left: " << ended;
      }
    } else {
      const std::string library = culprit(killed);
      EXPECT_TRUE(may_end_the_process(library)) << context << ": " << killed;
      const bool has_met = !job.line(test.victim, "met").empty();
      if (has_met) {
        EXPECT_EQ(killed.find(" exhausted_rank+"), std::string::npos) << context << ": died in a call: " << killed;
      }
      outcome = (has_met ? "had met, killed in " : "killed in ") + library.substr(0, library.find('+'));
    }
    const std::string mate = job.line(1 - test.victim, "ended");
    EXPECT_FALSE(mate.empty()) << context << ": the other rank has died\n" << job.transcript();
    check_end(mate, context + ", the other rank");
    if (killed.empty()) {
      EXPECT_EQ(folder.list(), "") << context << ": something is left";
    }
  }
  return outcome;
}

class NoMemory : public testing::TestWithParam<Case> {};

TEST_P(NoMemory, IsAnErrorThatNamesItAndLeavesNothing) {
  const Case& test = GetParam();
  std::map<std::string, int> outcomes;
  const int calls = count_calls(test);
  ASSERT_GT(calls, 1000);
  const int points = is_long() ? 2000 : 5;
  const uint64_t seed = test_seed();
  SCOPED_TRACE("CCOM_TEST_SEED=" + std::to_string(seed));
  const int first = 1 + static_cast<int>(seed % static_cast<uint64_t>(calls / points));
  for (int i = 0; i < points; ++i) ++outcomes[run(test, first + i * (calls / points))];
  for (const auto& [what, times] : outcomes) std::printf("%4d x %s\n", times, what.c_str());
}

INSTANTIATE_TEST_SUITE_P(Of, NoMemory,
                         testing::Values(Case{"shm", 0, false}, Case{"shm", 1, false}, Case{"tcp", 0, false},
                                         Case{"tcp", 1, false}, Case{"shm", 0, true}, Case{"shm", 1, true},
                                         Case{"tcp", 0, true}, Case{"tcp", 1, true}),
                         [](const auto& of) {
                           const Case& test = of.param;
                           return std::string(test.is_ever ? "from_then_on" : "once") + "_" + test.transport +
                                  "_rank_" + std::to_string(test.victim);
                         });

}  // namespace
}  // namespace ccom
