// SPDX-License-Identifier: Apache-2.0
//
// An asymmetric fence: those who publish pay nothing, those who go to sleep pay for both.
//
// Publisher: store news; light(); load sleepers. Sleeper: store sleepers; heavy(); load news. Of the two at least one
// sees the other. heavy() is membarrier(2), which makes every running thread of the registered processes execute a full
// barrier. A host that lacks it (some sandboxes) pays a fence on both sides: all ranks of a node must agree on which.
#pragma once

#include <atomic>

#include "base/futex.h"

namespace ccom {

class AsymmetricFence {
 public:
  // Registers this process. False: this kernel cannot.
  static bool available();

  constexpr explicit AsymmetricFence(bool asymmetric) : asymmetric_(asymmetric) {}
  void light() const {
    if (asymmetric_) {
      std::atomic_signal_fence(std::memory_order_seq_cst);
    } else {
      full_fence();
    }
  }
  void heavy() const;

 private:
  bool asymmetric_;
};

}  // namespace ccom
