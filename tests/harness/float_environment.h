// SPDX-License-Identifier: Apache-2.0
//
// Floating-point environments other than the default one, as programs set them for their threads.
#pragma once

#include <array>
#include <cstdint>
#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

namespace ccom {

struct FloatControl {
  const char* name;
  uint64_t word;
};
#if defined(__SSE2__)
// MXCSR. The last one as after feenableexcept(FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW).
inline constexpr std::array<FloatControl, 4> kOtherFloatControls{
    {{"flushes subnormals", 0x9fc0}, {"rounds upward", 0x5f80}, {"rounds toward zero", 0x7f80}, {"traps", 0x1900}}};
inline uint64_t float_control() { return _mm_getcsr(); }
inline void set_float_control(uint64_t word) { _mm_setcsr(static_cast<uint32_t>(word)); }
#elif defined(__aarch64__)
// FPCR. Few processors have traps.
inline constexpr std::array<FloatControl, 3> kOtherFloatControls{
    {{"flushes subnormals", 1 << 24}, {"rounds upward", 1 << 22}, {"rounds toward zero", 3 << 22}}};
inline uint64_t float_control() {
  uint64_t word;
  asm volatile("mrs %0, fpcr" : "=r"(word));
  return word;
}
inline void set_float_control(uint64_t word) { asm volatile("msr fpcr, %0" : : "r"(word) : "memory"); }
#endif

// The calling thread's, as long as the object exists.
class InFloatControl {
 public:
  explicit InFloatControl(const FloatControl& control) : set_(control.word), before_(float_control()) {
    set_float_control(set_);
  }
  ~InFloatControl() { set_float_control(before_); }
  InFloatControl(const InFloatControl&) = delete;
  InFloatControl& operator=(const InFloatControl&) = delete;
  // But for the flags of exceptions.
  bool is_unchanged() const { return ((float_control() ^ set_) & ~uint64_t{0x3f}) == 0; }

 private:
  const uint64_t set_, before_;
};

}  // namespace ccom
