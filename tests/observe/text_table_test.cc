// SPDX-License-Identifier: Apache-2.0
#include "observe/text_table.h"

#include <gtest/gtest.h>

#include <memory>

namespace ccom {
namespace {

std::string text(uint64_t key) { return "text " + std::to_string(key); }
uint32_t reference_of(TextIndex& index, uint64_t key) {
  return index.of(key, [key] { return text(key); });
}

TEST(TextTable, GivesBackWhatWasPutThere) {
  const auto table = std::make_unique<TextTable>();
  TextIndex index(*table);
  const uint32_t first = reference_of(index, 1), second = reference_of(index, 2);
  EXPECT_NE(first, second);
  EXPECT_EQ(table->find(first), "text 1");
  EXPECT_EQ(table->find(second), "text 2");
  EXPECT_EQ(reference_of(index, 1), first);
  EXPECT_EQ(table->find(0), "");
  EXPECT_EQ(table->find(0xffffffff), "");
}

TEST(TextTable, CutsLongTextsAndCleansOthers) {
  const auto table = std::make_unique<TextTable>();
  EXPECT_EQ(table->find(table->put(0, std::string(500, 'x'))), std::string(TextTable::kTextBytes, 'x'));
  EXPECT_EQ(table->find(table->put(0, "a\nb\x1b[2J")), "a b [2J");
  EXPECT_EQ(table->find(table->put(0, "")), "");
}

TEST(TextTable, ATextThatMadeRoomIsNotMistakenForAnother) {
  const auto table = std::make_unique<TextTable>();
  TextIndex index(*table);
  const uint32_t first = reference_of(index, 1);
  for (uint64_t key = 2; key <= TextTable::kTexts + 1; ++key) reference_of(index, key);
  EXPECT_EQ(table->find(first), "");
  const uint32_t again = reference_of(index, 1);
  EXPECT_NE(again, first);
  EXPECT_EQ(table->find(again), "text 1");
}

// That of the last calls stays, though of() gives it without a look-up.
TEST(TextTable, WhatIsInUseStays) {
  const auto table = std::make_unique<TextTable>();
  TextIndex index(*table);
  const uint32_t used = reference_of(index, 1);
  for (uint64_t key = 100; key < 300; ++key) {
    index.of_another(key, text(key));
    ASSERT_EQ(table->find(reference_of(index, 1)), "text 1");
    ASSERT_EQ(reference_of(index, 1), used);
  }
}

}  // namespace
}  // namespace ccom
