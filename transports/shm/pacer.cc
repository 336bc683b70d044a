// SPDX-License-Identifier: Apache-2.0
#include "transports/shm/pacer.h"

#include <algorithm>
#include <cmath>

namespace ccom::shm {
namespace {

// At most 11 days, so that sums fit into 64 bits.
uint64_t whole(double ns) { return static_cast<uint64_t>(std::llround(std::min(ns, 1e15))); }

// When the wire became free.
uint64_t take(std::atomic<uint64_t>& free_at_ns, uint64_t head_ns, uint64_t busy_ns) {
  uint64_t free = free_at_ns.load(std::memory_order_relaxed);
  while (true) {
    const uint64_t start = std::max(free, head_ns);
    if (free_at_ns.compare_exchange_weak(free, start + busy_ns, std::memory_order_relaxed)) return start;
  }
}

}  // namespace

uint64_t reserve(const std::vector<ShmWire>& way, WireLine* lines, uint64_t head_ns, size_t size_bytes) {
  uint64_t tail_ns = head_ns;
  for (const ShmWire& wire : way) {
    WireLine& line = lines[wire.line];
    const uint64_t busy_ns = whole(std::max(static_cast<double>(size_bytes) * wire.ns_per_byte, wire.post_ns));
    const uint64_t start_ns = take(line.free_at_ns, head_ns, busy_ns);
    line.bytes.fetch_add(size_bytes, std::memory_order_relaxed);
    tail_ns = std::max(tail_ns, start_ns + busy_ns) + whole(wire.latency_ns);
    head_ns = start_ns + whole(wire.latency_ns);
  }
  return tail_ns;
}

Pacer::Pacer(const ShmFabric& fabric, WireLine* lines, Now now)
    : fabric_(fabric), lines_(lines), now_(std::move(now)) {}

uint64_t Pacer::post(int local_rank, size_t size_bytes) {
  const uint64_t now = now_();
  if (now - left_ns_ > kOwnNs) rank_ns_ = now;
  left_ns_ = now;
  free_ns_ = std::max(free_ns_, rank_ns_) + whole(fabric_.post_ns);
  return reserve(fabric_.ways[static_cast<size_t>(local_rank)], lines_, free_ns_, size_bytes);
}

uint64_t Pacer::reduce(uint64_t at_ns, size_t size_bytes) {
  free_ns_ = std::max(free_ns_, at_ns) + whole(2 * static_cast<double>(size_bytes) * fabric_.reduce_ns_per_byte);
  return free_ns_;
}

void Pacer::notify(uint64_t at_ns) {
  rank_ns_ = std::max(rank_ns_, at_ns);
  left_ns_ = now_();
}

}  // namespace ccom::shm
