// SPDX-License-Identifier: Apache-2.0
//
// Every order of three of the calls that use, change and end a communicator, of which the last is followed by
// ccomCommDestroy; blocking and not, waiting for each other's end and not, and each pair from two threads at once.
#include <array>
#include <atomic>
#include <barrier>
#include <string>
#include <thread>
#include <vector>

#include "tests/harness/threads.h"
#include "tests/harness/waiting.h"
#include "tests/harness/world.h"

namespace ccom {
namespace {

using testing::AnyOf;
using testing::Eq;

constexpr int kRanks = 2;

enum class Action { Reduce, Queue, Split, Shrink, Grow, Finalize, Abort };
constexpr std::array kActions = {Action::Reduce, Action::Queue,    Action::Split, Action::Shrink,
                                 Action::Grow,   Action::Finalize, Action::Abort};
constexpr std::array kNames = {"Reduce", "Queue", "Split", "Shrink", "Grow", "Finalize", "Abort"};
const char* name_of(Action action) { return kNames[static_cast<size_t>(action)]; }
void PrintTo(Action action, std::ostream* out) { *out << name_of(action); }

enum class Pace { Blocking, Patient, Hasty };  // the latter two are not blocking; Hasty: nobody waits for an end
constexpr std::array kPaces = {"Blocking", "Patient", "Hasty"};

ccomConfig_t config_of(Pace pace) {
  ccomConfig_t config = CCOM_CONFIG_INIT;
  config.blocking = pace == Pace::Blocking ? 1 : 0;
  config.timeoutMs = pace == Pace::Hasty ? 1000 : 20000;
  config.initTimeoutMs = config.timeoutMs;
  return config;
}

ccomResult_t ended(ccomComm_t comm) {
  ccomResult_t state = ccomInProgress;
  wait_until([&] { return ccomCommGetAsyncError(comm, &state) != ccomSuccess || state != ccomInProgress; });
  return state;
}

// What the ranks of a job share: they grow by one rank, with the id of rank 0.
struct Job {
  std::barrier<> all{kRanks};
  ccomUniqueId id{};
  ccomResult_t has_id = ccomSuccess;
};

// One rank, which a thread drives, or two.
class Rank {
 public:
  Rank(Job& job, Pace pace, int rank, ccomComm_t comm) : job_(job), pace_(pace), rank_(rank), comm_(comm) {
    EXPECT_OK(ccomStreamCreate(&stream_));
  }
  // Destroys all in the order in which they were made: parts outlive what they were made of.
  ~Rank() {
    EXPECT_THAT(ccomStreamDestroy(stream_), AnyOf(ccomSuccess, ccomInvalidUsage, ccomAborted, ccomRemoteError));
    EXPECT_OK(ccomCommDestroy(comm_));
    for (const ccomComm_t made : made_) EXPECT_OK(ccomCommDestroy(made));
  }
  Rank(const Rank&) = delete;
  Rank& operator=(const Rank&) = delete;

  // grows: a new rank comes to a Grow.
  ccomResult_t make(Action action, bool grows = false) {
    switch (action) {
      case Action::Reduce: return reduce(comm_, nullptr);
      case Action::Queue: {
        const ccomResult_t queued = reduce(comm_, stream_);
        return queued == ccomSuccess && pace_ != Pace::Hasty ? ccomStreamSynchronize(stream_, -1) : queued;
      }
      case Action::Split: return keep([&](ccomComm_t* made) { return ccomCommSplit(comm_, 0, 0, made, nullptr); });
      case Action::Shrink:
        return keep([&](ccomComm_t* made) { return ccomCommShrink(comm_, nullptr, 0, made, nullptr, 0); });
      case Action::Grow: return grow(grows);
      case Action::Finalize: {
        const ccomResult_t result = ccomCommFinalize(comm_);
        return after_start(result, comm_);
      }
      case Action::Abort: return ccomCommAbort(comm_);
    }
    return ccomInternalError;
  }

 private:
  ccomResult_t reduce(ccomComm_t comm, ccomStream_t stream) {
    return ccomAllReduce(&value_, &value_, 1, ccomInt32, ccomMax, comm, stream);
  }

  // What became of what goes on in that handle; unless that is not waited for.
  ccomResult_t after_start(ccomResult_t result, ccomComm_t comm) const {
    return result == ccomInProgress && pace_ != Pace::Hasty ? ended(comm) : result;
  }

  template <typename Make>
  ccomResult_t keep(const Make& make) {
    ccomComm_t made = nullptr;
    const ccomResult_t begun = make(&made), result = after_start(begun, made);
    if (made != nullptr) made_.push_back(made);
    if (result == ccomSuccess && made != nullptr) {
      EXPECT_OK(reduce(made, nullptr));
    }
    return result;
  }

  ccomResult_t grow(bool has_newcomer) {
    if (rank_ == 0) job_.has_id = ccomCommGetUniqueId(comm_, &job_.id);
    job_.all.arrive_and_wait();
    if (job_.has_id != ccomSuccess) return job_.has_id;
    const ccomConfig_t config = config_of(Pace::Blocking);
    std::jthread newcomer;
    if (rank_ == 0 && has_newcomer) {
      newcomer = std::jthread([&] {
        ccomComm_t larger = nullptr;
        EXPECT_OK(ccomCommGrow(nullptr, kRanks + 1, &job_.id, kRanks, &larger, &config));
        int value = 0;
        EXPECT_OK(ccomAllReduce(&value, &value, 1, ccomInt32, ccomMax, larger, nullptr));
        EXPECT_OK(ccomCommDestroy(larger));
      });
    }
    return keep([&](ccomComm_t* made) {
      return ccomCommGrow(comm_, kRanks + 1, rank_ == 0 ? &job_.id : nullptr, -1, made, nullptr);
    });
  }

  Job& job_;
  const Pace pace_;
  const int rank_;
  const ccomComm_t comm_;
  ccomStream_t stream_ = nullptr;
  std::vector<ccomComm_t> made_;
  int value_ = 1;
};

// All ranks, each in a thread of its own.
template <typename Body>
void with_job(Pace pace, const Body& body) {
  Job job;
  const ccomConfig_t config = config_of(pace);
  std::array<ccomComm_t, kRanks> comms{};
  if (pace == Pace::Blocking) {
    ASSERT_OK(ccomCommInitAll(comms.data(), kRanks, &config));
  } else {
    const ccomUniqueId id = new_id();
    for (int rank = 0; rank < kRanks; ++rank)
      ASSERT_EQ(ccomCommInitRankConfig(&comms[static_cast<size_t>(rank)], kRanks, id, rank, &config), ccomInProgress);
  }
  run_threads(kRanks, [&](size_t i) {
    if (pace == Pace::Patient) {
      EXPECT_OK(ended(comms[i]));
      job.all.arrive_and_wait();
    }
    Rank rank(job, pace, static_cast<int>(i), comms[i]);
    body(job, rank);
  });
}

struct State {
  bool is_finalized = false, is_aborted = false;
  bool is_open() const { return !is_finalized && !is_aborted; }
};

// What a call returns that all ranks make after all have come back from the one before.
ccomResult_t expected(State state, Action action) {
  if (action == Action::Abort || state.is_open()) return ccomSuccess;
  if (action == Action::Finalize) return state.is_aborted ? ccomAborted : ccomSuccess;
  if (state.is_finalized) return ccomInvalidUsage;
  return action == Action::Shrink ? ccomSuccess : ccomAborted;
}

class Lifecycle : public testing::TestWithParam<std::tuple<Pace, Action>> {};

TEST_P(Lifecycle, EveryOrderOfThreeCalls) {
  const auto [pace, first] = GetParam();
  for (const Action second : kActions) {
    for (const Action third : kActions) {
      if (pace == Pace::Hasty && (first == Action::Grow || second == Action::Grow || third == Action::Grow)) continue;
      const std::string order = std::string(name_of(first)) + ", " + name_of(second) + ", " + name_of(third);
      with_job(pace, [&, pace = pace, first = first](Job& job, Rank& rank) {
        State state;
        for (const Action action : {first, second, third}) {
          const ccomResult_t result = rank.make(action, state.is_open());
          if (pace == Pace::Hasty) {
            EXPECT_THAT(result,
                        AnyOf(ccomSuccess, ccomInProgress, ccomInvalidUsage, ccomAborted, ccomRemoteError, ccomTimeout))
                << order << ": " << name_of(action) << ": " << error_text();
            continue;
          }
          EXPECT_EQ(result, expected(state, action)) << order << ": " << name_of(action) << ": " << error_text();
          state.is_finalized |= action == Action::Finalize;
          state.is_aborted |= action == Action::Abort;
          job.all.arrive_and_wait();
        }
      });
      if (testing::Test::HasFailure()) return;
    }
  }
}

std::string name_of_case(const testing::TestParamInfo<std::tuple<Pace, Action>>& info) {
  return std::string(kPaces[static_cast<size_t>(std::get<0>(info.param))]) + name_of(std::get<1>(info.param));
}
INSTANTIATE_TEST_SUITE_P(All, Lifecycle,
                         testing::Combine(testing::Values(Pace::Blocking, Pace::Patient, Pace::Hasty),
                                          testing::ValuesIn(kActions)),
                         name_of_case);

// At most one of them has a place in the order of the ranks' calls.
TEST(Lifecycle, EveryPairFromTwoThreads) {
  for (const Pace pace : {Pace::Blocking, Pace::Patient, Pace::Hasty}) {
    for (const Action one : {Action::Reduce, Action::Queue, Action::Split, Action::Finalize, Action::Abort}) {
      for (const Action other : {Action::Finalize, Action::Abort}) {
        for (int round = 0; round < 4; ++round) {
          with_job(pace, [&](Job&, Rank& rank) {
            std::barrier both(2);
            const auto make = [&](Action action) {
              both.arrive_and_wait();
              EXPECT_THAT(rank.make(action), AnyOf(ccomSuccess, ccomInProgress, ccomInvalidUsage, ccomAborted,
                                                   ccomRemoteError, ccomTimeout))
                  << name_of(one) << " beside " << name_of(other) << ": " << name_of(action) << ": " << error_text();
            };
            std::jthread beside([&] { make(other); });
            make(one);
          });
          if (testing::Test::HasFailure()) return;
        }
      }
    }
  }
}

// U18: the group's end used what was no longer there, or hung.
TEST(Lifecycle, NothingIsDestroyedThatAnOpenGroupNeeds) {
  for (const bool is_queued : {false, true}) {
    with_ranks(2, [is_queued](int, ccomComm_t& comm) {
      const ccomStream_t stream = is_queued ? new_stream() : nullptr;
      int value = 3, sum = 0;
      ASSERT_OK(ccomGroupStart());
      ASSERT_OK(ccomAllReduce(&value, &sum, 1, ccomInt32, ccomSum, comm, stream));
      EXPECT_ERROR(ccomCommDestroy(comm), ccomInvalidUsage, "the communicator has calls in a group that is open");
      if (is_queued) {
        EXPECT_ERROR(ccomStreamDestroy(stream), ccomInvalidUsage, "the stream has calls in a group that is open");
      }
      ASSERT_OK(ccomGroupEnd());
      EXPECT_OK(ccomStreamDestroy(stream));
      EXPECT_EQ(sum, 6);
      EXPECT_OK(ccomCommDestroy(comm));
      comm = nullptr;
    });
  }
}

// U6: the stream's thread waited for itself.
TEST(Lifecycle, ACallbackDoesNotWaitForItsOwnStream) {
  struct Seen {
    ccomStream_t stream;
    ccomResult_t synchronized, destroyed;
  } seen{new_stream(), ccomSuccess, ccomSuccess};
  const auto look = [](void* user, ccomResult_t) {
    Seen& mine = *static_cast<Seen*>(user);
    mine.synchronized = ccomStreamSynchronize(mine.stream, -1);
    mine.destroyed = ccomStreamDestroy(mine.stream);
  };
  ASSERT_OK(ccomStreamAddCallback(seen.stream, look, &seen));
  ASSERT_OK(ccomStreamSynchronize(seen.stream, 20000));
  EXPECT_EQ(seen.synchronized, ccomInvalidUsage);
  EXPECT_EQ(seen.destroyed, ccomInvalidUsage);
  EXPECT_OK(ccomStreamDestroy(seen.stream));
}

}  // namespace
}  // namespace ccom
