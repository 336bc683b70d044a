// SPDX-License-Identifier: Apache-2.0
//
// What other processes of the user may put where tools look: directories and boards of random bytes, descriptors that
// are something else, files that could shrink, contents that change while they are read. Nothing of it is believed, and
// nothing crashes.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <random>
#include <thread>

#include "base/descriptor.h"
#include "base/time.h"
#include "liveness/board.h"
#include "observe/directory.h"
#include "observe/listing.h"
#include "tests/harness/effort.h"
#include "tools/jobs/health.h"
#include "tools/jobs/json.h"
#include "tools/jobs/look.h"

namespace ccom {
namespace {

constexpr uint64_t kNumber = 0x1234567890abcdef;
constexpr int kSlots = 4;

// A memfd with its mapping.
struct Memory {
  Descriptor fd;
  Bytes bytes;
  Memory(const char* name, size_t size, bool is_sealed = true) {
    fd = Descriptor::from([&] { return ::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING); });
    EXPECT_EQ(::ftruncate(fd.get(), static_cast<off_t>(size)), 0);
    if (is_sealed) {
      EXPECT_EQ(::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0);
    }
    void* const address = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
    bytes = {static_cast<std::byte*>(address), size};
  }
  ~Memory() { ::munmap(bytes.data(), bytes.size()); }
  Directory& directory() { return *reinterpret_cast<Directory*>(bytes.data()); }
};

CommunicatorEntry entry_for(int board_fd, uint64_t offset = 0) {
  CommunicatorEntry entry;
  entry.communicator = kNumber;
  entry.rank = 1;
  entry.ranks = entry.slots = kSlots;
  entry.hosts = 1;
  entry.host = 0;
  entry.slot = 1;
  entry.board_fd = board_fd;
  entry.board_offset = offset;
  entry.begun_ns = 1;
  entry.name = "test";
  entry.host_name = "node";
  return entry;
}

const CommunicatorSeen* find(const HostSeen& seen) {
  for (const CommunicatorSeen& communicator : seen.communicators)
    if (communicator.number == kNumber) return &communicator;
  return nullptr;
}

HostSeen look() {
  HostSeen seen = look_at_host(::geteuid(), {.with_source_lines = false});
  const Health health = judge(seen, 1);
  EXPECT_FALSE(to_json(seen, health, nullptr).empty());
  return seen;
}

void make_board(Memory& memory, size_t offset) {
  Board board = Board::over(memory.bytes.subspan(offset), kSlots).value();
  board.initialise();
  for (int slot = 0; slot < kSlots; ++slot) board.slot(slot).rank.store(slot + 1);
}

const ActivityRecord& record_in(Memory& memory) { return Board::over(memory.bytes, kSlots).value().slot(0).activity; }

class Hostile : public ::testing::Test {
 protected:
  static constexpr size_t kOffset = 4096;
  Memory board_{"ccom", kOffset + Board::bytes(kSlots)};
  Memory directory_{kDirectoryName, sizeof(Directory)};
  void SetUp() override {
    make_board(board_, kOffset);
    directory_.directory().magic.store(Directory::kMagic);
  }
  const uint64_t seed_ = test_seed();
  std::mt19937_64 random_{seed_};
  void list(const CommunicatorEntry& entry) { directory_.directory().put(0, entry); }
};

TEST_F(Hostile, WhatIsRightIsSeen) {
  list(entry_for(board_.fd.get(), kOffset));
  const HostSeen seen = look();
  const CommunicatorSeen* const found = find(seen);
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->name, "test");
  EXPECT_EQ(found->seen.size(), size_t{kSlots});
}

TEST_F(Hostile, BoardsThatAreNotThereAreNotSeen) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const Descriptor one(ends[0]), other(ends[1]);
  Memory unsealed("ccom", board_.bytes.size(), false);
  make_board(unsealed, kOffset);
  const std::vector<CommunicatorEntry> wrong{
      entry_for(one.get()),                         // a pipe
      entry_for(999999),                            // nothing
      entry_for(unsealed.fd.get(), kOffset),        // may shrink
      entry_for(board_.fd.get(), kOffset + 64),     // does not fit
      entry_for(board_.fd.get(), kOffset + 1),      // not aligned
      entry_for(board_.fd.get(), UINT64_MAX - 63),  // the sum overflows
      entry_for(board_.fd.get(), 0),                // no board
      entry_for(directory_.fd.get(), 0),            // something else
  };
  for (const CommunicatorEntry& entry : wrong) {
    list(entry);
    EXPECT_EQ(find(look()), nullptr) << entry.board_fd << " " << entry.board_offset;
  }
}

TEST_F(Hostile, EntriesThatContradictThemselvesAreNotSeen) {
  std::vector<CommunicatorEntry> wrong(9, entry_for(board_.fd.get(), kOffset));
  wrong[0].ranks = -1;
  wrong[1].ranks = INT32_MAX;
  wrong[2].rank = kSlots;
  wrong[3].slots = 0;
  wrong[4].slot = -1;
  wrong[5].hosts = 0;
  wrong[6].host = 1;
  wrong[7].board_fd = -1;
  wrong[8].begun_ns = -1;
  for (size_t i = 0; i < wrong.size(); ++i) {
    list(wrong[i]);
    EXPECT_EQ(find(look()), nullptr) << i;
  }
}

TEST_F(Hostile, DirectoriesOfOtherVersionsAreCounted) {
  directory_.directory().magic.store(Directory::kMagic + 1);
  EXPECT_GE(look().other_versions, 1);
}

TEST_F(Hostile, DirectoriesOfAnySizeAreRead) {
  for (const size_t size : {size_t{1}, size_t{255}, offsetof(Directory, entries), offsetof(Directory, entries) + 100}) {
    Memory other(kDirectoryName, size);
    if (size >= 8) other.directory().magic.store(Directory::kMagic);
    (void)look();
  }
}

TEST_F(Hostile, BoardsOfRandomBytesDoNotCrash) {
  SCOPED_TRACE("CCOM_TEST_SEED=" + std::to_string(seed_));
  list(entry_for(board_.fd.get(), kOffset));
  for (int round = 0; round < 200; ++round) {
    for (size_t i = kOffset + 8; i + 8 <= board_.bytes.size(); i += 8) {
      const uint64_t word = random_() >> (random_() % 64);
      if (random_() % 3 != 0) std::memcpy(board_.bytes.data() + i, &word, 8);
    }
    (void)look();
  }
}

// A board of four ranks of eight, and what it says of the others.
class HostileTable : public Hostile {
 protected:
  Board told_ = Board::over(board_.bytes.subspan(kOffset), kSlots).value();
  std::atomic<uint64_t>& watched_ = reinterpret_cast<BoardHeader*>(board_.bytes.data() + kOffset)->watched_until_ns;
  CommunicatorEntry entry() {
    CommunicatorEntry entry = entry_for(board_.fd.get(), kOffset);
    entry.ranks = 2 * kSlots;
    entry.hosts = 2;
    return entry;
  }
  static ActivityGroup group(Rank first, Rank last) {
    ActivityGroup group;
    group.state = RankActivity::State::Outside;
    group.site = "/dev/zero+0x12 step";
    group.host = "b";
    group.since_ns = group.beat_ns = monotonic_ns();
    group.ranks = {{first, last}};
    return group;
  }
  const CommunicatorSeen& see(const ActivityTable& table) {
    told_.publish_elsewhere(table, monotonic_ns());
    list(entry());
    seen_ = look();
    return *find(seen_);
  }
  HostSeen seen_;
};

TEST_F(HostileTable, IsReadAndAskedForAndNothingElseIsWritten) {
  told_.publish_elsewhere({group(4, 6)}, monotonic_ns());
  std::vector<std::byte> before(board_.bytes.begin(), board_.bytes.end());
  list(entry());
  const int64_t now_ns = monotonic_ns();
  const HostSeen seen = look();
  ASSERT_NE(find(seen), nullptr);
  ASSERT_EQ(find(seen)->seen.size(), 7U);
  EXPECT_EQ(find(seen)->seen[6].host, "b");
  EXPECT_EQ(find(seen)->seen[6].activity.site, "zero+0x12 (step)");
  EXPECT_EQ(find(seen)->unknown, std::vector<Rank>{7});
  const auto until_ns = static_cast<int64_t>(watched_.load());
  EXPECT_GT(until_ns, now_ns + 1'000'000'000);
  EXPECT_LT(until_ns, monotonic_ns() + kLongestWatchNs);
  watched_.store(0);
  EXPECT_TRUE(std::ranges::equal(board_.bytes, before));
}

TEST_F(HostileTable, OfASingleHostNobodyIsAsked) {
  list(entry_for(board_.fd.get(), kOffset));
  EXPECT_NE(find(look()), nullptr);
  EXPECT_EQ(watched_.load(), 0U);
}

TEST_F(HostileTable, MemoryThatMayNotBeWrittenIsReadAllTheSame) {
  ASSERT_EQ(::fcntl(board_.fd.get(), F_ADD_SEALS, F_SEAL_FUTURE_WRITE), 0);
  EXPECT_EQ(see({group(4, 7)}).seen.size(), 8U);
  EXPECT_EQ(watched_.load(), 0U);
}

TEST_F(HostileTable, CannotSpeakForRanksOfThisHostOrForMoreThanThereAre) {
  EXPECT_TRUE(std::ranges::all_of(see({group(0, 3)}).seen, &RankSeen::is_here));
  EXPECT_EQ(see({group(5, 1000)}).seen.size(), 7U);
  ActivityTable often;
  for (int i = 0; i < 50; ++i) often.push_back(group(0, INT32_MAX - 1));
  EXPECT_EQ(see(often).seen.size(), 4U);
}

TEST_F(HostileTable, OfDamagedBytesDoesNotCrash) {
  SCOPED_TRACE("CCOM_TEST_SEED=" + std::to_string(seed_));
  list(entry());
  auto& elsewhere = reinterpret_cast<BoardHeader*>(board_.bytes.data() + kOffset)->elsewhere;
  for (int round = 0; round < 300; ++round) {
    told_.publish_elsewhere({group(4, 4), group(5, 6), group(7, 7)}, monotonic_ns());
    for (uint64_t change = random_() % 8; change > 0; --change)
      elsewhere.words[random_() % 40].store(random_() >> (random_() % 64));
    if (round % 5 == 0) elsewhere.size_bytes.store(random_() >> (random_() % 64));
    if (round % 9 == 0) elsewhere.at_ns.store(random_());
    (void)look();
  }
}

TEST_F(Hostile, DirectoriesOfRandomBytesDoNotCrash) {
  SCOPED_TRACE("CCOM_TEST_SEED=" + std::to_string(seed_));
  for (int round = 0; round < 50; ++round) {
    for (size_t i = 8; i + 8 <= 64 * 1024; i += 8) {
      const uint64_t word = random_() >> (random_() % 64);
      std::memcpy(directory_.bytes.data() + i, &word, 8);
    }
    (void)look();
  }
}

TEST_F(Hostile, ContentsMayChangeWhileTheyAreRead) {
  list(entry_for(board_.fd.get(), kOffset));
  std::atomic<bool> ends{false};
  std::thread writer([&] {
    std::mt19937_64 random(1);
    while (!ends) {
      auto* const words = reinterpret_cast<std::atomic<uint64_t>*>(board_.bytes.data());
      words[random() % (board_.bytes.size() / 8)].store(random() >> (random() % 64), std::memory_order_relaxed);
      auto* const entries = reinterpret_cast<std::atomic<uint64_t>*>(directory_.bytes.data());
      entries[32 + random() % 64].store(random() >> (random() % 64), std::memory_order_relaxed);
    }
  });
  for (int round = 0; round < 300; ++round) (void)look();
  ends = true;
  writer.join();
}

TEST_F(Hostile, ControlCharactersDoNotReachTheTerminal) {
  CommunicatorEntry entry = entry_for(board_.fd.get(), kOffset);
  entry.name = "a\x1b[2Jb";
  list(entry);
  const HostSeen seen = look();
  ASSERT_NE(find(seen), nullptr);
  EXPECT_EQ(find(seen)->name.find('\x1b'), std::string::npos);
}

TEST(Listing, IsSeenAsLongAsItLives) {
  Memory board("ccom", Board::bytes(kSlots));
  make_board(board, 0);
  {
    const Listing listing(entry_for(board.fd.get()), record_in(board));
    ASSERT_TRUE(listing.is_listed());
    EXPECT_NE(find(look()), nullptr);
  }
  EXPECT_EQ(find(look()), nullptr);
}

TEST(Listing, PlacesAreUsedAgainAndWhatFindsNoneIsCounted) {
  Memory board("ccom", Board::bytes(kSlots));
  make_board(board, 0);
  for (int round = 0; round < 2; ++round) {
    std::vector<Listing> all;
    for (size_t i = 0; i < Directory::kEntries; ++i) all.emplace_back(entry_for(board.fd.get()), record_in(board));
    EXPECT_TRUE(all.back().is_listed());
  }
  const uint64_t before = look().unlisted;
  std::vector<Listing> all;
  for (size_t i = 0; i < Directory::kEntries; ++i) all.emplace_back(entry_for(board.fd.get()), record_in(board));
  EXPECT_FALSE(Listing(entry_for(board.fd.get()), record_in(board)).is_listed());
  EXPECT_EQ(look().unlisted, before + 1);
}

TEST_F(Hostile, NothingIsShownToOtherUsers) {
  list(entry_for(board_.fd.get(), kOffset));
  ASSERT_NE(find(look()), nullptr);
  for (const CommunicatorSeen& communicator : look_at_host(::geteuid() + 12345, {}).communicators)
    ADD_FAILURE() << communicator.number;
}

}  // namespace
}  // namespace ccom
