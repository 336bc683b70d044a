// SPDX-License-Identifier: Apache-2.0
#include "base/arena.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <random>

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

}  // namespace
}  // namespace ccom
