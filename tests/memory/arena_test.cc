// SPDX-License-Identifier: Apache-2.0
#include "memory/arena.h"

#include <gtest/gtest.h>

#include <sys/mman.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <thread>

namespace ccom {
namespace {

TEST(ArenaMemory, IsZeroedAlsoWhenItIsUsedAgain) {
  const auto arena = *Arena::create(size_t{1} << 20);
  for (int i = 0; i < 3; ++i) {
    auto* const memory = static_cast<std::byte*>(*arena->allocate(100000));
    EXPECT_EQ(memory[0], std::byte{0});
    EXPECT_EQ(memory[99999], std::byte{0});
    std::memset(memory, 1, 100000);
    EXPECT_TRUE(arena->free(memory).is_ok());
  }
}

TEST(ArenaMemory, BlocksDoNotOverlapAndAllOfItComesBack) {
  const auto arena = *Arena::create(size_t{16} << 20);
  std::mt19937 random(1);
  std::map<std::byte*, size_t> blocks;
  for (int i = 0; i < 2000; ++i) {
    if (blocks.empty() || random() % 3 != 0) {
      const size_t size = 1 + random() % 300000;
      Result<void*> memory = arena->allocate(size);
      if (!memory) {
        EXPECT_EQ(memory.error().code(), Code::OutOfMemory);
        continue;
      }
      auto* const begin = static_cast<std::byte*>(*memory);
      const auto next = blocks.lower_bound(begin);
      EXPECT_TRUE(next == blocks.end() || begin + size <= next->first);
      EXPECT_TRUE(next == blocks.begin() || std::prev(next)->first + std::prev(next)->second <= begin);
      blocks[begin] = size;
    } else {
      const auto victim = std::next(blocks.begin(), static_cast<std::ptrdiff_t>(random() % blocks.size()));
      EXPECT_TRUE(arena->free(victim->first).is_ok());
      blocks.erase(victim);
    }
  }
  for (const auto& [block, size] : blocks) EXPECT_TRUE(arena->free(block).is_ok());
  EXPECT_TRUE(arena->allocate(size_t{16} << 20).has_value());
}

TEST(ArenaMemory, SaysWhatIsMissing) {
  const auto arena = *Arena::create(size_t{1} << 20);
  const Result<void*> memory = arena->allocate(size_t{2} << 20);
  ASSERT_FALSE(memory.has_value());
  EXPECT_EQ(memory.error().code(), Code::OutOfMemory);
  EXPECT_NE(memory.error().cure().find("CCOM_ARENA_BYTES"), std::string::npos);
}

TEST(ArenaMemory, RefusesPointersThatAreNotBlocks) {
  const auto arena = *Arena::create(size_t{1} << 20);
  auto* const memory = static_cast<std::byte*>(*arena->allocate(5000));
  EXPECT_EQ(arena->free(memory + 4096).code(), Code::InvalidArgument);
  EXPECT_TRUE(arena->free(memory).is_ok());
  EXPECT_EQ(arena->free(memory).code(), Code::InvalidArgument);
}

// ---- Pages, of this system and of one with larger ones --------------------------------------------------------------

class ArenaPages : public testing::TestWithParam<size_t> {};
INSTANTIATE_TEST_SUITE_P(Bytes, ArenaPages, testing::ValuesIn(std::set{page_bytes(), size_t{65536}}),
                         testing::PrintToStringParamName());

TEST_P(ArenaPages, AreWholeInEveryAllocation) {
  const size_t page = GetParam();
  const auto arena = *Arena::create(16 * page, page);
  EXPECT_EQ(arena->segment().bytes().size(), 16 * page);
  for (size_t i = 0; i < 16; ++i) {
    const auto* const memory = static_cast<std::byte*>(*arena->allocate(1 + i));
    EXPECT_EQ(memory, arena->segment().bytes().data() + i * page);
  }
  EXPECT_FALSE(arena->allocate(1));
}

struct Unmap {
  size_t size_bytes;
  void operator()(void* memory) const { ::munmap(memory, size_bytes); }
};
using Pages = std::unique_ptr<void, Unmap>;

// `count` of them, beginning on one.
Pages ordinary_pages(size_t count, size_t page) {
  const size_t size_bytes = count * page;
  void* const mapped = ::mmap(nullptr, size_bytes + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  auto* const begin = static_cast<std::byte*>(mapped);
  const size_t before = -reinterpret_cast<uintptr_t>(begin) % page;
  if (before > 0) ::munmap(begin, before);
  ::munmap(begin + before + size_bytes, page - before);
  return Pages(begin + before, Unmap{size_bytes});
}

TEST_P(ArenaPages, KeepAddressAndContentsWhenAdoptedAndGivenBack) {
  const size_t page = GetParam();
  const auto arena = *Arena::create(512 * page, page);
  const size_t size = 300 * page;
  const Pages pages = ordinary_pages(300, page);
  auto* const memory = static_cast<unsigned char*>(pages.get());
  for (size_t i = 0; i < size; ++i) memory[i] = static_cast<unsigned char>(i * 7);
  EXPECT_FALSE(arena->offset_of(memory, size));
  ASSERT_TRUE(arena->adopt(memory, size).is_ok());
  const auto offset = arena->offset_of(memory + 100, size - 100);
  ASSERT_TRUE(offset);
  auto* const seen_by_others = reinterpret_cast<unsigned char*>(arena->segment().bytes().data() + *offset);
  EXPECT_EQ(seen_by_others[5], static_cast<unsigned char>(105 * 7));
  seen_by_others[5] = 1;
  EXPECT_EQ(memory[105], 1);
  memory[105] = static_cast<unsigned char>(105 * 7);
  EXPECT_FALSE(arena->offset_of(memory, size + 1));
  ASSERT_TRUE(arena->give_back(memory, size).is_ok());
  EXPECT_FALSE(arena->offset_of(memory, size));
  for (size_t i = 0; i < size; ++i) ASSERT_EQ(memory[i], static_cast<unsigned char>(i * 7));
  EXPECT_TRUE(arena->allocate(512 * page).has_value());  // all of it came back
}

TEST(ArenaAdoption, CountsTheSameRange) {
  const auto arena = *Arena::create(size_t{1} << 20);
  const size_t size = 2 * page_bytes();
  const Pages pages = ordinary_pages(2, page_bytes());
  EXPECT_TRUE(arena->adopt(pages.get(), size).is_ok());
  EXPECT_TRUE(arena->adopt(pages.get(), size).is_ok());
  EXPECT_TRUE(arena->give_back(pages.get(), size).is_ok());
  EXPECT_TRUE(arena->offset_of(pages.get(), size));
  EXPECT_TRUE(arena->give_back(pages.get(), size).is_ok());
  EXPECT_EQ(arena->give_back(pages.get(), size).code(), Code::InvalidArgument);
}

TEST_P(ArenaPages, AreNotAdoptedInPartsNorIfTheyAreNotOrdinary) {
  const size_t page = GetParam();
  const auto arena = *Arena::create(16 * page, page);
  const Pages pages = ordinary_pages(4, page);
  auto* const memory = static_cast<std::byte*>(pages.get());
  EXPECT_EQ(arena->adopt(memory + page / 2, page).code(), Code::InvalidArgument);
  EXPECT_EQ(arena->adopt(memory, page + page / 4).code(), Code::InvalidArgument);
  EXPECT_TRUE(arena->adopt(memory + page, page).is_ok());
  EXPECT_EQ(arena->adopt(memory, 2 * page).code(), Code::InvalidArgument);  // overlaps
  EXPECT_TRUE(arena->give_back(memory + page, page).is_ok());
  ASSERT_EQ(::mprotect(memory, page, PROT_READ), 0);
  EXPECT_EQ(arena->adopt(memory, 2 * page).code(), Code::NotSupported);
  void* const shared = *arena->allocate(page);
  EXPECT_FALSE(arena->adopt(shared, page).is_ok());
  ASSERT_EQ(::munmap(memory + page, page), 0);
  ASSERT_EQ(::mprotect(memory, page, PROT_READ | PROT_WRITE), 0);
  EXPECT_EQ(arena->adopt(memory, 2 * page).code(), Code::InvalidArgument);  // a hole
}

// The arena as a peer has it: a second mapping of the same file.
std::byte* map_as_peer(Arena& arena) {
  void* const mapping =
      ::mmap(nullptr, arena.segment().bytes().size(), PROT_READ | PROT_WRITE, MAP_SHARED, arena.segment().fd(), 0);
  return mapping == MAP_FAILED ? nullptr : static_cast<std::byte*>(mapping);
}

TEST_P(ArenaPages, KeepContentsAndShutLateWritesOutWhenDetached) {
  const size_t page = GetParam();
  const auto arena = *Arena::create(256 * page, page);
  std::byte* const peer = map_as_peer(*arena);
  auto* const memory = static_cast<std::byte*>(*arena->allocate(10 * page));
  std::memset(memory, 1, 10 * page);
  const size_t offset = *arena->offset_of(memory, 10 * page);
  ASSERT_TRUE(arena->detach(memory + page + 900, 5 * page).is_ok());
  EXPECT_FALSE(arena->offset_of(memory, 10 * page)) << "nobody is to be told where it was";
  EXPECT_TRUE(arena->offset_of(memory + 8 * page, page));
  std::memset(peer + offset + page + 900, 2, 5 * page);  // the late writes
  for (size_t i = 0; i < 10 * page; ++i) ASSERT_EQ(memory[i], std::byte{1}) << i;
  memory[2 * page] = std::byte{3};
  EXPECT_EQ(peer[offset + 2 * page], std::byte{2});

  // That part of the arena is not used again, nor seen by later users of the addresses.
  ASSERT_TRUE(arena->free(memory).is_ok());
  while (const Result<void*> next = arena->allocate(page)) {
    const auto at = static_cast<size_t>(static_cast<std::byte*>(*next) - arena->segment().bytes().data());
    EXPECT_TRUE(at + page <= offset + page || at >= offset + 7 * page) << at;
  }
  ::munmap(peer, arena->segment().bytes().size());
}

TEST(ArenaDetachment, OfAdoptedMemoryKeepsContentsUntilItIsGivenBack) {
  const auto arena = *Arena::create(size_t{4} << 20);
  std::byte* const peer = map_as_peer(*arena);
  const size_t bytes = 16 * page_bytes();
  auto* const memory = static_cast<std::byte*>(std::aligned_alloc(page_bytes(), bytes));
  std::memset(memory, 1, bytes);
  ASSERT_TRUE(arena->adopt(memory, bytes).is_ok());
  const size_t offset = *arena->offset_of(memory, bytes);
  ASSERT_TRUE(arena->detach(memory + 100, 10).is_ok());
  EXPECT_FALSE(arena->offset_of(memory + 8192, 1)) << "all that was adopted together is detached";
  std::memset(peer + offset, 2, bytes);
  ASSERT_TRUE(arena->give_back(memory, bytes).is_ok());
  for (size_t i = 0; i < bytes; ++i) ASSERT_EQ(memory[i], std::byte{1}) << i;
  std::free(memory);
  ::munmap(peer, arena->segment().bytes().size());
}

TEST(ArenaDetachment, KeepsWhatOtherThreadsWriteMeanwhile) {
  const auto arena = *Arena::create(size_t{8} << 20);
  constexpr size_t kBytes = size_t{4} << 20;
  auto* const memory = static_cast<std::byte*>(*arena->allocate(kBytes));
  std::atomic<bool> ends{false};
  std::array<uint64_t, 64> counts{};
  std::thread writer([&] {  // to words at the ends of pages
    for (size_t i = 0; !ends; ++i) {
      const size_t page = i % counts.size() * (kBytes / counts.size());
      std::memcpy(memory + page + 4088, &++counts[i % counts.size()], sizeof(uint64_t));
    }
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_TRUE(arena->detach(memory, kBytes).is_ok());
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  ends = true;
  writer.join();
  for (size_t i = 0; i < counts.size(); ++i) {
    EXPECT_EQ(std::memcmp(memory + i * (kBytes / counts.size()) + 4088, &counts[i], sizeof(uint64_t)), 0) << i;
  }
}

TEST(ArenaDetachment, RefusesWhatIsNotInTheArena) {
  const auto arena = *Arena::create(size_t{1} << 20);
  std::array<std::byte, 64> outside{};
  EXPECT_EQ(arena->detach(outside.data(), outside.size()).code(), Code::InvalidArgument);
}

}  // namespace
}  // namespace ccom
