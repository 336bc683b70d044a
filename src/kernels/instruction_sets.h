// SPDX-License-Identifier: Apache-2.0
//
// Whether this machine has an instruction set that Highway compiles for, as glibc knows it, with what the kernel has
// enabled. Highway's own answer comes in a shared library that measures a clock when it is loaded: 3 ms of each
// process. Where there is one instruction set only, as on arm64, nothing is asked.
#pragma once

#include "hwy/detect_targets.h"

#include <cstdint>

#if HWY_ARCH_X86 && defined(__clang__) && !defined(_Bool)
#define _Bool bool  // NOLINT(bugprone-reserved-identifier): as GCC's <stdbool.h> does in C++, for glibc's header
#include <sys/platform/x86.h>
#undef _Bool
#elif HWY_ARCH_X86
#include <sys/platform/x86.h>
#endif

namespace ccom {

#if HWY_ARCH_X86

inline bool has_avx2() {
  return CPU_FEATURE_ACTIVE(SSSE3) && CPU_FEATURE_ACTIVE(SSE4_1) && CPU_FEATURE_ACTIVE(SSE4_2) &&
         CPU_FEATURE_ACTIVE(AES) && CPU_FEATURE_ACTIVE(PCLMULQDQ) && CPU_FEATURE_ACTIVE(AVX) &&
         CPU_FEATURE_ACTIVE(AVX2) && CPU_FEATURE_ACTIVE(FMA) && CPU_FEATURE_ACTIVE(F16C) && CPU_FEATURE_ACTIVE(LZCNT) &&
         CPU_FEATURE_ACTIVE(BMI1) && CPU_FEATURE_ACTIVE(BMI2);
}

inline bool has_avx3() {
  return has_avx2() && CPU_FEATURE_ACTIVE(AVX512F) && CPU_FEATURE_ACTIVE(AVX512VL) && CPU_FEATURE_ACTIVE(AVX512CD) &&
         CPU_FEATURE_ACTIVE(AVX512DQ) && CPU_FEATURE_ACTIVE(AVX512BW);
}

#endif

// target: HWY_AVX3, ...; true for what the compiler takes for granted.
inline bool has_instruction_set(int64_t target) {
  switch (target) {
#if HWY_ARCH_X86
    case HWY_AVX3: return has_avx3();
    case HWY_AVX2: return has_avx2();
#endif
    default: return true;
  }
}

}  // namespace ccom
