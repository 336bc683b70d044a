// SPDX-License-Identifier: Apache-2.0
//
// One of a program's targets under libFuzzer: CCOM_FUZZ=NAME PROGRAM [libFuzzer's arguments].
#include <cstdio>

#include "tests/fuzz/target.h"

namespace {

const ccom::fuzz::Target& chosen() {
  const char* const name = std::getenv("CCOM_FUZZ");
  for (const ccom::fuzz::Target& target : ccom::fuzz::targets()) {
    if (name != nullptr && std::string_view(name) == target.name) return target;
  }
  std::fprintf(stderr, "CCOM_FUZZ=%s is no target of this program. There are:\n", name == nullptr ? "" : name);
  for (const ccom::fuzz::Target& target : ccom::fuzz::targets()) std::fprintf(stderr, "%s\n", target.name);
  std::exit(3);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const ccom::fuzz::Target& target = chosen();
  target.run({reinterpret_cast<const std::byte*>(data), size});
  return 0;
}
