// SPDX-License-Identifier: Apache-2.0
#include "liveness/life_line.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>

namespace ccom {

namespace {

constexpr long kOffset = static_cast<long>(offsetof(LifeLine, word)) - static_cast<long>(offsetof(LifeLine, entry));

// We may be killed between any two instructions, and the kernel then reads what we wrote: the order is the compiler's
// to keep.
void keep_order() { std::atomic_signal_fence(std::memory_order_seq_cst); }

}  // namespace

LifeLines::LifeLines() : thread_(::gettid()) {
  head_ = {.list = {&head_.list}, .futex_offset = kOffset, .list_op_pending = nullptr};
  size_t size = 0;
  if (::syscall(SYS_get_robust_list, 0, &previous_, &size) != 0) previous_ = nullptr;
  if (::syscall(SYS_set_robust_list, &head_, sizeof head_) != 0) failure_ = errno;
}

LifeLines::~LifeLines() {
  if (::gettid() == thread_) ::syscall(SYS_set_robust_list, previous_, sizeof head_);
}

// In the list first: a word that is not ours yet means nothing to the kernel.
Status LifeLines::hold(LifeLine& line) {
  CCOM_ASSERT(::gettid() == thread_);
  if (failure_ != 0) return system_error(failure_, "register a list of robust futexes");
  if (!line.is_free()) return error(Code::InternalError, "a life line is held already");
  line.entry.next = head_.list.next;
  keep_order();
  head_.list.next = &line.entry;
  keep_order();
  line.word.store(static_cast<uint32_t>(thread_), std::memory_order_release);
  return Status::ok();
}

void LifeLines::release(LifeLine& line) {
  CCOM_ASSERT(::gettid() == thread_);
  line.word.store(0, std::memory_order_release);
  keep_order();
  robust_list* before = &head_.list;
  while (before->next != &line.entry) before = before->next;
  before->next = line.entry.next;
}

}  // namespace ccom
