// SPDX-License-Identifier: Apache-2.0
#include "liveness/robust_futex.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>

namespace ccom {

namespace {

constexpr long kOffset =
    static_cast<long>(offsetof(RobustFutex, word)) - static_cast<long>(offsetof(RobustFutex, entry));

RobustFutex& futex_of(robust_list* entry) {
  return *reinterpret_cast<RobustFutex*>(reinterpret_cast<char*>(entry) - offsetof(RobustFutex, entry));
}

// The thread may be killed between any two instructions, after which the kernel reads the list: stores must stay in
// program order.
void keep_order() { std::atomic_signal_fence(std::memory_order_seq_cst); }

}  // namespace

RobustFutexList::RobustFutexList() : thread_(::gettid()) {
  head_ = {.list = {&head_.list}, .futex_offset = kOffset, .list_op_pending = nullptr};
  size_t size = 0;
  if (::syscall(SYS_get_robust_list, 0, &previous_, &size) != 0) previous_ = nullptr;
  if (::syscall(SYS_set_robust_list, &head_, sizeof head_) != 0) failure_ = errno;
}

RobustFutexList::~RobustFutexList() {
  if (::gettid() == thread_) ::syscall(SYS_set_robust_list, previous_, sizeof head_);
}

// Linked before the word is set: the kernel ignores an entry whose word does not carry our thread id.
Status RobustFutexList::hold(RobustFutex& line) {
  CCOM_ASSERT(::gettid() == thread_);
  if (failure_ != 0) return system_error(failure_, "register the robust futex list");
  if (!line.is_free()) return error(Code::InternalError, "a robust futex is already held");
  line.entry.next = head_.list.next;
  line.before = &head_.list;
  if (line.entry.next != &head_.list) futex_of(line.entry.next).before = &line.entry;
  keep_order();
  head_.list.next = &line.entry;
  keep_order();
  line.word.store(static_cast<uint32_t>(thread_), std::memory_order_release);
  return Status::ok();
}

void RobustFutexList::release(RobustFutex& line) {
  CCOM_ASSERT(::gettid() == thread_);
  line.word.store(0, std::memory_order_release);
  keep_order();
  line.before->next = line.entry.next;
  if (line.entry.next != &head_.list) futex_of(line.entry.next).before = line.before;
}

}  // namespace ccom
