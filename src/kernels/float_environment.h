// SPDX-License-Identifier: Apache-2.0
//
// The floating-point environment in which results have the same bits on all ranks.
#pragma once

#include <cstdint>
#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

namespace ccom {

// The calling thread rounds to nearest, keeps subnormals and has no traps for floating-point exceptions while the
// object exists, whatever the program has set: libraries compiled with -ffast-math flush subnormals in the thread that
// loads them, and so does torch.set_flush_denormal. Reads the control register once, and writes it only if it says
// anything else; then exceptions that are raised meanwhile leave no flags.
class DefaultFloatEnvironment {
 public:
  DefaultFloatEnvironment() : before_(control()) {
    if ((before_ & kMeaning) != kDefault) [[unlikely]]
      set_control(kDefault);
  }
  ~DefaultFloatEnvironment() {
    if ((before_ & kMeaning) != kDefault) [[unlikely]]
      set_control(before_);
  }
  DefaultFloatEnvironment(const DefaultFloatEnvironment&) = delete;
  DefaultFloatEnvironment& operator=(const DefaultFloatEnvironment&) = delete;

 private:
#if defined(__SSE2__)
  using Control = uint32_t;                                               // MXCSR
  static constexpr Control kDefault = 0x1f80, kMeaning = ~Control{0x3f};  // all traps masked; below: flags
  static Control control() { return _mm_getcsr(); }
  static void set_control(Control control) { _mm_setcsr(control); }
#elif defined(__aarch64__)
  using Control = uint64_t;  // FPCR; FPSR has the flags
  static constexpr Control kDefault = 0, kMeaning = ~Control{0};
  static Control control() {
    Control control;
    asm volatile("mrs %0, fpcr" : "=r"(control));
    return control;
  }
  static void set_control(Control control) { asm volatile("msr fpcr, %0" : : "r"(control) : "memory"); }
#else
#error "This processor's floating-point control register is not known here."
#endif
  const Control before_;
};

}  // namespace ccom
