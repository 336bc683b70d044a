// SPDX-License-Identifier: Apache-2.0
//
// An error without memory for its text is still an error, and not the end of the process: the constructor's handler
// once was a function try block, which throws again, out of a noexcept function.
#include <gtest/gtest.h>

#include "base/status.h"

namespace {

thread_local bool has_memory = true;

bool fails() { return !has_memory; }

}  // namespace

#include "tests/operator_new.h"

namespace ccom {
namespace {

template <typename Fn>
auto without_memory(Fn fn) {
  has_memory = false;
  auto result = fn();
  has_memory = true;
  return result;
}

TEST(NoMemory, MakesAStatusThatSaysSo) {
  std::string text = "a text that is too long to be kept in the string itself";
  const Status made = without_memory([&text] { return Status(Code::Timeout, std::move(text)); });
  EXPECT_EQ(made.code(), Code::OutOfMemory);
  EXPECT_EQ(made.message(), "out of memory");
}

TEST(NoMemory, FormatsAnErrorThatSaysSo) {
  const Status made =
      without_memory([] { return error(Code::Timeout, "rank %d waits, and %s", 3, "this is long enough"); });
  EXPECT_EQ(made.code(), Code::OutOfMemory);
}

TEST(NoMemory, LeavesWhatAnErrorSaidBefore) {
  Status made(Code::Timeout, "late");
  const Status with_cure = without_memory([&made] { return std::move(made).in("a phase with a long name, indeed"); });
  EXPECT_FALSE(with_cure.is_ok());
}

}  // namespace
}  // namespace ccom
