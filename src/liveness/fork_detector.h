// SPDX-License-Identifier: Apache-2.0
//
// Tells a forked child that it is one, where it has what its parent made.
#pragma once

namespace ccom {

// Distinguishes a forked child from its parent without a system call. Immutable.
class ForkDetector {
 public:
  ForkDetector();
  ForkDetector(const ForkDetector&) = delete;
  ForkDetector& operator=(const ForkDetector&) = delete;
  ~ForkDetector();
  bool in_child() const;

 private:
  volatile const char* page_;  // null if the kernel lacks MADV_WIPEONFORK
  int pid_;
};

}  // namespace ccom
