// SPDX-License-Identifier: Apache-2.0
//
// The library's version; src/api asserts that it is the public header's.
#pragma once

namespace ccom {
inline constexpr const char* kVersion = "0.9.0";
}
