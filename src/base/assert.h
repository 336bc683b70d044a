// SPDX-License-Identifier: Apache-2.0
//
// CCOM_ASSERT: a broken invariant is a bug in ccom. Prints the expression and aborts; stays on in release builds, so
// keep it out of loops over elements.
#pragma once

namespace ccom {
[[noreturn]] void assertion_failed(const char* expression, const char* file, int line);
}

#define CCOM_ASSERT(expression) \
  (__builtin_expect(!!(expression), 1) ? (void)0 : ::ccom::assertion_failed(#expression, __FILE__, __LINE__))
