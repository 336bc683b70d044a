// SPDX-License-Identifier: Apache-2.0
#include "liveness/fork_detector.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>

namespace ccom {

ForkDetector::ForkDetector() : page_(nullptr), pid_(::getpid()) {
  const auto size = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  void* page = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return;
  *static_cast<char*>(page) = 1;
  if (::madvise(page, size, MADV_WIPEONFORK) == 0) {
    page_ = static_cast<const char*>(page);
  } else {
    ::munmap(page, size);
  }
}

ForkDetector::~ForkDetector() {
  if (page_ != nullptr) ::munmap(const_cast<char*>(page_), static_cast<size_t>(::sysconf(_SC_PAGESIZE)));
}

bool ForkDetector::in_child() const { return page_ != nullptr ? *page_ == 0 : ::getpid() != pid_; }

}  // namespace ccom
