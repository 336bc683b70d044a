// SPDX-License-Identifier: Apache-2.0
#include "transports/shm/doorbell.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <ctime>

namespace ccom::shm {
namespace {

// Not the private kind: the sleeper is usually another process.
long futex(std::atomic<uint32_t>& word, int operation, uint32_t value, const timespec* timeout) {
  return ::syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), operation, value, timeout, nullptr, 0);
}

}  // namespace

void ring(RankLines& lines) {
  lines.doorbell.fetch_add(1, std::memory_order_acq_rel);
  futex(lines.doorbell, FUTEX_WAKE, INT_MAX, nullptr);
}

Nap::Nap(RankLines& lines) : lines_(lines), before_(lines.doorbell.load(std::memory_order_acquire)) {
  lines_.sleeping.store(1, std::memory_order_relaxed);
  full_fence();
}

void Nap::sleep(std::chrono::nanoseconds at_most) {
  if (at_most.count() <= 0) return;
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(at_most);
  timespec timeout{};
  timeout.tv_sec = static_cast<time_t>(seconds.count());
  timeout.tv_nsec = static_cast<long>((at_most - seconds).count());
  futex(lines_.doorbell, FUTEX_WAIT, before_, &timeout);
}

}  // namespace ccom::shm
