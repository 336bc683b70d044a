// SPDX-License-Identifier: Apache-2.0
#include "observe/listing.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>

#include "base/time.h"
#include "observe/activity_pulse.h"
#include "observe/activity_writer.h"
#include "observe/rank_activity.h"

namespace ccom {
namespace {

// A rank of a communicator.
struct Listed {
  std::unique_ptr<ActivityRecord> record = std::make_unique<ActivityRecord>();
  ActivityWriter writer{*record};
  Listing listing;
  Listed(uint64_t number, Rank rank, const char* name) : listing(entry(number, rank, name), *record) {
    EXPECT_TRUE(listing.is_listed());
  }
  static CommunicatorEntry entry(uint64_t number, Rank rank, const char* name) {
    CommunicatorEntry entry;
    entry.communicator = number;
    entry.rank = rank;
    entry.ranks = 2;
    entry.name = name;
    return entry;
  }
  void begin(uint64_t number) { writer.begin({number, 0, 0, 0}, 0, ActivityWriter::kTimedBytes); }
  std::string elsewhere() const { return call_elsewhere(*record, monotonic_ns()); }
};

constexpr uint64_t kWhole = 0xf4ab04'0000000001, kPart = 0x040c88'0000000002;

TEST(CallElsewhere, IsThatOfAnotherCommunicatorOfTheProcess) {
  Listed whole(kWhole, 1, "whole"), part(kPart, 0, "");
  EXPECT_TRUE(has_other_communicators());
  EXPECT_EQ(part.elsewhere(), "");
  whole.begin(2);
  EXPECT_EQ(part.elsewhere(), "in allreduce #2 of communicator f4ab04 (whole)");
  EXPECT_EQ(whole.elsewhere(), "") << "its own is no other";
  whole.writer.end();
  EXPECT_EQ(part.elsewhere(), "");
  part.begin(1);
  EXPECT_EQ(whole.elsewhere(), "in allreduce #1 of communicator 040c88");
}

TEST(CallElsewhere, OfSeveralIsTheOneThatHasLastedLongest) {
  Listed a(kWhole, 0, "a"), b(kPart, 0, "b"), c(3, 0, "c");
  b.begin(7);
  std::this_thread::sleep_for(std::chrono::milliseconds(2));  // the clock has gone on
  a.begin(8);
  EXPECT_EQ(c.elsewhere(), "in allreduce #7 of communicator 040c88 (b)");
}

// Ranks that are threads of one process: it may be another one's call.
TEST(CallElsewhere, IsUnknownWhereAProcessHasSeveralRanksOfACommunicator) {
  Listed whole(kWhole, 0, "whole"), other(kWhole, 1, "whole"), part(kPart, 0, "part");
  EXPECT_FALSE(has_other_communicators());
  other.begin(2);
  EXPECT_EQ(part.elsewhere(), "");
}

TEST(CallElsewhere, IsToldToWhoeverAsks) {
  Listed whole(kWhole, 0, "whole"), part(kPart, 0, "part");
  ActivityPulse pulse(*part.record);
  pulse.beat(monotonic_ns());
  whole.begin(2);
  const uint32_t question = ask_place(*part.record);
  EXPECT_FALSE(is_place_told(*part.record, question));
  EXPECT_FALSE(pulse.answer(monotonic_ns())) << "no need to ask again";
  EXPECT_TRUE(is_place_told(*part.record, question));
  EXPECT_EQ(read_activity(*part.record, monotonic_ns() + 1'000'000, true).place,
            "in allreduce #2 of communicator f4ab04 (whole)");
}

}  // namespace
}  // namespace ccom
