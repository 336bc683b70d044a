// SPDX-License-Identifier: Apache-2.0
//
// Says where a rank is outside of calls: by a function of the application, or of the binding of another language, which
// is called in a thread of its own and only when somebody asks (ccomSetLocator).
//
// The thread exists from the first question on. A function that does not return delays answers, and nothing else.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace ccom {

// Writes a text that ends in 0 into the buffer, or nothing.
using LocatorFunction = void (*)(char* text, size_t size, void* user);

// Null: none. Not while it runs: waits for that, a second at most.
void set_locator(LocatorFunction function, void* user);
bool has_locator();

// Has the function called unless it was since `since_ns` (CLOCK_MONOTONIC); never blocks. The answer, once there is one
// that is younger than that.
struct Located {
  std::string text;
  int64_t at_ns = 0;
};
std::optional<Located> locate_since(int64_t since_ns);

}  // namespace ccom
