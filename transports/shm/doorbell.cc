// SPDX-License-Identifier: Apache-2.0
#include "transports/shm/doorbell.h"

namespace ccom::shm {
namespace {

const uint32_t* word_of(const std::atomic<uint32_t>& doorbell) { return reinterpret_cast<const uint32_t*>(&doorbell); }

}  // namespace

void ring(RankLines& lines) {
  lines.doorbell.fetch_add(1, std::memory_order_acq_rel);
  futex_wake_all(word_of(lines.doorbell));
}

Nap::Nap(RankLines& lines) : lines_(lines), before_(lines.doorbell.load(std::memory_order_acquire)) {
  lines_.sleeping.store(1, std::memory_order_relaxed);
  full_fence();
}

void Nap::sleep(std::chrono::nanoseconds at_most) { futex_wait(word_of(lines_.doorbell), before_, at_most); }

}  // namespace ccom::shm
