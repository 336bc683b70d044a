// SPDX-License-Identifier: Apache-2.0
#include "transports/shm/pacer.h"

#include <algorithm>
#include <cmath>
#include <tuple>

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

bool comes_later(const Flight& one, const Flight& other) {
  return std::tie(one.head_ns, one.number) > std::tie(other.head_ns, other.number);
}

}  // namespace

void take_wire(Flight& flight, WireLine* lines) {
  const ShmWire& wire = (*flight.way)[flight.hop++];
  const size_t size_bytes = flight.send.payload.size();
  const uint64_t busy_ns = whole(std::max(static_cast<double>(size_bytes) * wire.ns_per_byte, wire.post_ns));
  const uint64_t start_ns = take(lines[wire.line].free_at_ns, flight.head_ns, busy_ns);
  lines[wire.line].bytes.fetch_add(size_bytes, std::memory_order_relaxed);
  flight.tail_ns = std::max(flight.tail_ns, start_ns + busy_ns) + whole(wire.latency_ns);
  flight.head_ns = start_ns + whole(wire.latency_ns);
}

Pacer::Pacer(const ShmFabric& fabric, WireLine* lines, Now now)
    : fabric_(fabric), lines_(lines), now_(std::move(now)) {}

std::optional<Flight> Pacer::post(ShmChannel* channel, int local_rank, const Send& send) {
  const uint64_t now = now_();
  if (now - left_ns_ > kOwnNs) rank_ns_ = now;
  left_ns_ = now;
  free_ns_ = std::max(free_ns_, rank_ns_) + whole(fabric_.post_ns);
  Flight flight{.channel = channel,
                .send = send,
                .way = &fabric_.ways[static_cast<size_t>(local_rank)],
                .head_ns = free_ns_,
                .tail_ns = free_ns_,
                .number = posted_++};
  return go_on(flight);
}

std::optional<Flight> Pacer::advance() {
  std::ranges::pop_heap(flights_, comes_later);
  Flight flight = flights_.back();
  flights_.pop_back();
  return go_on(flight);
}

std::optional<Flight> Pacer::go_on(Flight& flight) {
  if (flight.hop < flight.way->size()) take_wire(flight, lines_);
  if (flight.hop == flight.way->size()) return flight;
  flights_.push_back(flight);
  std::ranges::push_heap(flights_, comes_later);
  return std::nullopt;
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
