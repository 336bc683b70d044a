// SPDX-License-Identifier: Apache-2.0
//
// What the recorder writes is what the reader says, at every moment: a copy of the file taken while calls are recorded
// shows whole calls only, and neither words that do not belong together nor any other file makes the reader say what
// was never recorded, or crash.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <random>
#include <thread>

#include "observe/recorder.h"
#include "tests/trace/recordings.h"

namespace ccom {
namespace {

using testing::HasSubstr;

constexpr uint64_t kBytes = recording::kLeastBytes;
constexpr uint64_t kRecords = recording::layout_of(kBytes).records;

void record_call(CallRecorder& calls, uint64_t number, uint64_t count) {
  calls.begin({number, count, kAllReduceKind}, 0);
  calls.end(Code::Ok);
}

class RecorderTest : public testing::Test {
 protected:
  void SetUp() override {
    auto made = Recorder::create(folder_.path(), kBytes);
    ASSERT_TRUE(made) << made.error().message();
    recorder_ = *std::move(made);
  }
  CallRecorder::Identity identity(uint64_t number = 7) const {
    return {.number = number,
            .parent = 0,
            .rank = 2,
            .nranks = 4,
            .name = "world",
            .topology = "{}",
            .costs = "{\"lines\":{}}",
            .origins = nullptr};
  }
  Recording read() const {
    auto found = read_recording(recorder_->path());
    EXPECT_TRUE(found) << found.error().message();
    return *std::move(found);
  }

  TemporaryFolder folder_;
  std::unique_ptr<Recorder> recorder_;
};

TEST_F(RecorderTest, SaysWhatACallWas) {
  set_call_site("train.py:88 (step)");
  CallRecorder calls(*recorder_, identity());
  calls.begin({1, 1000, kAllReduceKind}, call_site(nullptr));
  calls.set_algorithm("ring");
  calls.begin_wait(3);
  calls.end_wait();
  calls.end(Code::Timeout);
  set_call_site("");
  const Recording found = read();
  ASSERT_EQ(found.calls.size(), 1u);
  const RecordedCall& call = found.calls[0];
  EXPECT_EQ(call.call, (CallDescriptor{1, 1000, kAllReduceKind}));
  EXPECT_EQ(found.texts[call.site], "train.py:88 (step)");
  EXPECT_EQ(found.texts[call.algorithm], "ring");
  EXPECT_EQ(call.waited_for, 3);
  EXPECT_EQ(call.code, Code::Timeout);
  ASSERT_TRUE(call.ended_ns);
  EXPECT_LE(call.waited_ns, *call.ended_ns - call.begun_ns);
  EXPECT_EQ(found.pid, ::getpid());
  ASSERT_EQ(found.communicators.size(), 1u);
  EXPECT_EQ(found.communicators[0].rank, 2);
  EXPECT_EQ(found.communicators[0].nranks, 4);
  EXPECT_EQ(found.communicators[0].name, "world");
  EXPECT_EQ(found.communicators[0].topology, "{}");
  EXPECT_EQ(found.communicators[0].costs, "{\"lines\":{}}");
}

TEST_F(RecorderTest, SaysInWhichWayACallRan) {
  CallRecorder calls(*recorder_, identity());
  uint64_t number = 0;
  const auto call = [&](const char* algorithm, const char* way) {
    calls.begin({++number, 1000, kAllReduceKind}, 0);
    calls.set_algorithm(algorithm);
    calls.set_way(way);
    calls.end(Code::Ok);
  };
  const std::string longest(200, 'x');
  call("node", "two_shot; readable");
  call("node", "one_shot; mapped");
  call("node", "");
  call("ring", "one_shot; mapped");
  call("node", longest.c_str());
  const Recording found = read();
  std::vector<std::string> texts;
  for (const RecordedCall& made : found.calls) texts.push_back(found.texts[made.algorithm]);
  EXPECT_EQ(texts, (std::vector<std::string>{"node: two_shot; readable", "node: one_shot; mapped", "node",
                                             "ring: one_shot; mapped", "node: " + longest.substr(0, 128)}));
}

TEST_F(RecorderTest, TimesAreThoseOfTheMonotonicClock) {
  CallRecorder calls(*recorder_, identity());
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  const int64_t before = monotonic_ns();
  calls.begin({1, 1, kAllReduceKind}, 0);
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  calls.end(Code::Ok);
  const int64_t after = monotonic_ns();
  const Recording found = read();
  ASSERT_EQ(found.calls.size(), 1u);
  constexpr int64_t kSlackNs = 2'000'000;
  EXPECT_GE(found.calls[0].begun_ns, before - kSlackNs);
  EXPECT_LE(*found.calls[0].ended_ns, after + kSlackNs);
  EXPECT_GE(*found.calls[0].ended_ns - found.calls[0].begun_ns, 30'000'000 - kSlackNs);
}

TEST_F(RecorderTest, ShowsACallThatIsNotOver) {
  CallRecorder calls(*recorder_, identity());
  record_call(calls, 1, 10);
  calls.begin({2, 20, kAllReduceKind}, 0);
  calls.begin_wait(1);
  const Recording found = read();
  ASSERT_EQ(found.calls.size(), 2u);
  EXPECT_TRUE(found.calls[0].ended_ns);
  EXPECT_FALSE(found.calls[1].ended_ns);
  EXPECT_EQ(found.calls[1].call.number, 2u);
  EXPECT_EQ(found.calls[1].waited_for, 1);
}

TEST_F(RecorderTest, KeepsTheLastCalls) {
  CallRecorder calls(*recorder_, identity());
  const uint64_t last = 3 * kRecords + 5;
  for (uint64_t number = 1; number <= last; ++number) {
    record_call(calls, number, number);
  }
  const Recording found = read();
  EXPECT_LE(found.calls.size(), kRecords);
  EXPECT_GT(found.calls.size(), kRecords - 3 * recording::kBlock);
  for (size_t i = 0; i < found.calls.size(); ++i)
    ASSERT_EQ(found.calls[i].call.number, last - found.calls.size() + 1 + i);
}

// A communicator that calls rarely does not write over what others have recorded since.
TEST_F(RecorderTest, RareCallsGoToNewRecords) {
  CallRecorder rare(*recorder_, identity(7)), busy(*recorder_, identity(8));
  record_call(rare, 1, 1);
  for (uint64_t number = 1; number <= kRecords - 2 * recording::kBlock; ++number) {
    record_call(busy, number, 1);
  }
  record_call(rare, 2, 1);
  const Recording found = read();
  EXPECT_EQ(found.calls.back().call.number, 2u);
  EXPECT_EQ(found.torn, 0u);
}

// Records of the lap before in places that somebody has taken and not filled are no calls among the last ones.
TEST_F(RecorderTest, NoCallIsMissingBetweenTheLastOnes) {
  CallRecorder rare(*recorder_, identity(7)), busy(*recorder_, identity(8));
  for (uint64_t number = 1; number <= 3 * kRecords; ++number) {
    record_call(busy, number, 1);
    if (number % 100 != 0) continue;
    record_call(rare, number / 100, 1);
  }
  const Recording found = read();
  std::array<uint64_t, 2> last{};
  for (const RecordedCall& call : found.calls) {
    uint64_t& before = last[call.communicator];
    ASSERT_EQ(call.call.number, before == 0 ? call.call.number : before + 1);
    before = call.call.number;
  }
  EXPECT_EQ(last[0], 3 * kRecords / 100);
  EXPECT_EQ(last[1], 3 * kRecords);
}

TEST_F(RecorderTest, PartsKnowTheirParent) {
  const std::vector<Rank> origins{1, 3};
  CallRecorder::Identity part = identity(8);
  part.parent = 7;
  part.topology = "";
  part.rank = 1;
  part.nranks = 2;
  part.origins = &origins;
  CallRecorder world(*recorder_, identity()), row(*recorder_, part);
  const Recording found = read();
  ASSERT_EQ(found.communicators.size(), 2u);
  EXPECT_EQ(found.communicators[1].parent, 7u);
  EXPECT_EQ(found.communicators[1].origins, origins);
}

// More communicators than there is room for, one after another: places are used again, and no call is said to be of
// another communicator than it was.
TEST_F(RecorderTest, PlacesOfClosedCommunicatorsAreUsedAgain) {
  const uint64_t many = recording::layout_of(kBytes).communicators * 3;
  for (uint64_t number = 1; number <= many; ++number) {
    CallRecorder calls(*recorder_, identity(number));
    record_call(calls, 1, number);
  }
  const Recording found = read();
  EXPECT_GT(found.calls.size(), 0u);
  EXPECT_GT(found.unplaced, 0u);
  for (const RecordedCall& call : found.calls)
    ASSERT_EQ(call.call.count, found.communicators[call.communicator].number);
}

TEST_F(RecorderTest, TooManyOpenCommunicatorsAreCounted) {
  const uint64_t room = recording::layout_of(kBytes).communicators;
  std::vector<std::unique_ptr<CallRecorder>> all;
  for (uint64_t number = 1; number <= room + 2; ++number) {
    all.push_back(std::make_unique<CallRecorder>(*recorder_, identity(number)));
    record_call(*all.back(), 1, 1);
  }
  EXPECT_EQ(read().lost_communicators, 2u);
}

TEST_F(RecorderTest, TextsThatFindNoRoomAreCounted) {
  const std::string topology(kBytes, 'x');
  CallRecorder::Identity large = identity();
  large.topology = topology;
  CallRecorder calls(*recorder_, large);
  const Recording found = read();
  EXPECT_EQ(found.lost_texts, 1u);
  EXPECT_EQ(found.communicators[0].topology, "");
}

TEST_F(RecorderTest, FilesAreOfThisUserAloneAndHaveNamesOfTheirOwn) {
  const auto other = Recorder::create(folder_.path(), kBytes);
  ASSERT_TRUE(other);
  EXPECT_NE((*other)->path(), recorder_->path());
  struct stat status {};
  ASSERT_EQ(::stat(recorder_->path().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  EXPECT_EQ(static_cast<uint64_t>(status.st_size), kBytes);
  EXPECT_GE(static_cast<uint64_t>(status.st_blocks) * 512, kBytes);  // its space is taken
}

TEST_F(RecorderTest, AFolderThatIsNotThereIsMadeForThisUserAlone) {
  const std::string path = folder_.path() + "/made";
  const mode_t before = ::umask(0);
  const auto made = Recorder::create(path + "/", kBytes);
  ::umask(before);
  ASSERT_TRUE(made) << made.error().message();
  struct stat info {};
  ASSERT_EQ(::stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0700u);
  EXPECT_TRUE(Recorder::create(path, kBytes)) << "and the next process finds it";
}

TEST_F(RecorderTest, U9AFileBeyondTheLimitOfFileSizesIsAnError) {
  struct rlimit before {};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const struct rlimit less { kBytes / 2, before.rlim_max };
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &less), 0);
  const auto made = Recorder::create(folder_.path(), kBytes);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  ASSERT_FALSE(made);
  EXPECT_THAT(made.error().message(), HasSubstr("File too large"));
  EXPECT_EQ(entries_of(folder_.path()), 1) << "and leaves none";
}

TEST_F(RecorderTest, AFolderThatCannotBeMadeIsAnError) {
  const auto made = Recorder::create(folder_.path() + "/none/below", kBytes);
  ASSERT_FALSE(made);
  EXPECT_THAT(made.error().message(), HasSubstr("none/below: No such file"));
}

TEST_F(RecorderTest, OnlyOnesOwnSymbolicLinksAreFollowed) {
  const std::string link = folder_.path() + "/link", target = folder_.path() + "/target";
  ASSERT_EQ(::mkdir(target.c_str(), 0700), 0);
  ASSERT_EQ(::symlink(target.c_str(), link.c_str()), 0);
  EXPECT_TRUE(Recorder::create(link, kBytes));
  if (::geteuid() != 0) GTEST_SKIP() << "needs root: to make another user's link";
  ASSERT_EQ(::lchown(link.c_str(), 65534, 65534), 0);
  for (const std::string& path : {link, link + "/"}) {
    const auto made = Recorder::create(path, kBytes);
    ASSERT_FALSE(made) << path;
    EXPECT_THAT(made.error().message(), HasSubstr("is a symbolic link of user 65534"));
  }
}

// Every word of a record by that of another one: what is then there was never a call.
TEST_F(RecorderTest, MixedRecordsAreDropped) {
  {
    CallRecorder calls(*recorder_, identity());
    for (uint64_t number = 1; number <= 2; ++number) {
      calls.begin({number, number * 100, kAllReduceKind}, 0);
      calls.set_algorithm(number == 1 ? "ring" : "tree");
      if (number == 2) calls.begin_wait(1);
      std::this_thread::sleep_for(std::chrono::microseconds(100));
      calls.end_wait();
      calls.end(Code::Ok);
    }
  }
  const std::string whole = contents_of(recorder_->path());
  const size_t records = recording::layout_of(kBytes).records_at;
  const Recording before = *read_text(whole);
  ASSERT_EQ(before.calls.size(), 2u);
  for (size_t word = 0; word < 8; ++word) {
    std::string mixed = whole;
    mixed.replace(records + 64 + word * 8, 8, whole.substr(records + word * 8, 8));
    if (mixed == whole) continue;
    const auto found = read_text(mixed);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->torn, 1u) << "word " << word;
    ASSERT_EQ(found->calls.size(), 1u);
    EXPECT_EQ(found->calls[0], before.calls[0]);
  }
}

// Whether a reader says of a call what another one says, or less: a name that is missing.
bool says_no_more(const Recording& found, const RecordedCall& call, const Recording& whole, const RecordedCall& other) {
  const RecordedCommunicator &in = found.communicators[call.communicator],
                             &of = whole.communicators[other.communicator];
  const auto is_less = [](const std::string& text, const std::string& full) { return text.empty() || text == full; };
  return call.call == other.call && call.code == other.code &&
         call.ended_ns.has_value() == other.ended_ns.has_value() && in.number == of.number && in.rank == of.rank &&
         in.nranks == of.nranks && is_less(in.name, of.name) &&
         is_less(found.texts[call.site], whole.texts[other.site]) &&
         is_less(found.texts[call.algorithm], whole.texts[other.algorithm]) &&
         (call.waited_for == other.waited_for || call.waited_for == -1);
}

// U10: the kind of a call that had not ended was believed, and its name looked up behind the table.
TEST_F(RecorderTest, U10OneWrongByteIsNeverBelieved) {
  set_call_site("train.py:88 (step)");
  CallRecorder calls(*recorder_, identity()), others(*recorder_, identity(9));
  for (uint64_t number = 1; number <= 20; ++number) {
    calls.begin({number, number * 100, kAllReduceKind}, call_site(nullptr));
    calls.set_algorithm(number % 2 == 0 ? "ring" : "tree");
    calls.end(number == 7 ? Code::Timeout : Code::Ok);
  }
  calls.begin({21, 5, kAllReduceKind}, call_site(nullptr));
  calls.set_algorithm("ring");
  calls.begin_wait(3);
  set_call_site("");
  const std::string whole = contents_of(recorder_->path());
  const Recording before = *read_text(whole);
  ASSERT_EQ(before.calls.size(), 21u);
  size_t damaged = 0, refused = 0;
  for (size_t at = 0; at < whole.size(); ++at) {
    const bool is_used = whole[at] != 0 || whole.substr(at, 8).find_first_not_of('\0') != std::string::npos;
    if (!is_used && at % 61 != 0) continue;
    std::string changed = whole;
    changed[at] = static_cast<char>(changed[at] ^ 0x11);
    const auto found = read_text(changed);
    ++damaged;
    if (!found) {
      ++refused;
      continue;
    }
    for (const RecordedCall& call : found->calls) {
      ASSERT_TRUE(std::ranges::any_of(
          before.calls, [&](const RecordedCall& other) { return says_no_more(*found, call, before, other); }))
          << "byte " << at << ": " << text_of(call.call);
    }
  }
  EXPECT_GT(damaged, 5000u);
  EXPECT_GT(refused, 20u);
}

TEST_F(RecorderTest, AnythingElseIsRefusedOrRead) {
  {
    CallRecorder calls(*recorder_, identity());
    record_call(calls, 1, 1);
  }
  const std::string whole = contents_of(recorder_->path());
  for (size_t length = 0; length < whole.size(); length += length < 8192 ? 61 : 4099) {
    const auto found = read_text(whole.substr(0, length));
    ASSERT_FALSE(found) << length;
    EXPECT_FALSE(found.error().message().empty());
  }
  std::mt19937 random(17);
  for (int i = 0; i < 300; ++i) {
    std::string changed = whole;
    for (int byte = 0; byte < 20; ++byte) changed[random() % 6000] = static_cast<char>(random());
    const auto found = read_text(changed);
    EXPECT_TRUE(found || !found.error().message().empty());
  }
}

// Copies of the file while two threads write: as after a kill at that moment, but that a copy is not of one moment. So
// only what one record says is checked, not which ones there are.
TEST_F(RecorderTest, CallsAreWholeWheneverTheFileIsRead) {
  std::atomic<bool> stop{false};
  const auto record = [&](uint64_t communicator) {
    CallRecorder calls(*recorder_, identity(communicator));
    for (uint64_t number = 1; !stop; ++number) {
      calls.begin(
          {number, number * communicator,
           kind_of(Collective::Broadcast, DataType::Int8, ReduceOp::Sum, false, static_cast<Rank>(number % 1000))},
          0);
      calls.end(static_cast<Code>(number % 2 == 0 ? 0 : 8));
    }
  };
  std::thread one(record, 3), other(record, 5);
  uint64_t seen = 0;
  for (int copy = 0; copy < 100 || seen == 0; ++copy) {
    const Recording found = read();
    for (const RecordedCall& call : found.calls) {
      const uint64_t number = call.call.number;
      if (!call.ended_ns) continue;
      ASSERT_EQ(call.call.count, number * found.communicators[call.communicator].number);
      ASSERT_EQ(parts_of(call.call.kind).root, static_cast<Rank>(number % 1000));
      ASSERT_EQ(call.code, number % 2 == 0 ? Code::Ok : Code::Timeout);
      ++seen;
    }
  }
  stop = true;
  one.join();
  other.join();
  // A thread that stood still in a record may meet the other one a lap later.
  EXPECT_LE(read().torn, 2u);
}

}  // namespace
}  // namespace ccom
