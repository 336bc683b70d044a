// SPDX-License-Identifier: Apache-2.0
#include "observe/call_counters.h"

#include <algorithm>

namespace ccom {

// Space-saving (Metwally, Agrawal, El Abbadi: "Efficient Computation of Frequent and Top-k Elements in Data Streams",
// ICDT 2005): a rank that is not in the full table takes the place, and the time, of the one with the least.
void CallCounters::count_wait(Collective collective, uint64_t bytes, uint64_t ns, Rank peer) {
  add(cells[static_cast<size_t>(collective)][size_class(bytes)].waited_ns, ns);
  if (peer < 0) return;
  const uint64_t wanted = static_cast<uint64_t>(peer) + 1;
  const auto rank_of = [](const Peer& entry) { return entry.rank.load(std::memory_order_relaxed); };
  const auto ns_of = [](const Peer& entry) { return entry.ns.load(std::memory_order_relaxed); };
  Peer* entry = std::ranges::find(peers, wanted, rank_of);
  if (entry == peers.end()) entry = std::ranges::find(peers, uint64_t{0}, rank_of);
  const bool is_taken_over = entry == peers.end();
  if (is_taken_over) entry = std::ranges::min_element(peers, {}, ns_of);
  const uint64_t before = ns_of(*entry);
  peers_lock.write([&] {
    if (is_taken_over) entry->too_many_ns.store(before, std::memory_order_release);
    entry->rank.store(wanted, std::memory_order_release);
    entry->ns.store(before + ns, std::memory_order_release);
  });
}

namespace {

double to_seconds(uint64_t ns) { return static_cast<double>(ns) * 1e-9; }

CallTotals::Of total_of(const CallCounters::Cell& cell, size_t collective, size_t size_class) {
  const auto value = [](const std::atomic<uint64_t>& word) { return word.load(std::memory_order_relaxed); };
  const uint64_t timed = value(cell.timed), calls = std::max(value(cell.calls), timed);
  CallTotals::Of total{static_cast<Collective>(collective), size_class, calls, value(cell.bytes)};
  total.waited_seconds = to_seconds(value(cell.waited_ns));
  total.is_exact = timed == calls;
  total.timed = timed;
  total.timed_seconds = to_seconds(value(cell.ns));
  if (timed > 0) total.seconds = total.timed_seconds * static_cast<double>(calls) / static_cast<double>(timed);
  return total;
}

}  // namespace

CallTotals totals_of(const CallCounters& counters) {
  CallTotals totals;
  for (size_t collective = 0; collective < CallCounters::kCollectives; ++collective) {
    for (size_t size = 0; size < kSizeClasses; ++size) {
      const CallTotals::Of total = total_of(counters.cells[collective][size], collective, size);
      if (total.calls > 0 || total.waited_seconds > 0) totals.calls.push_back(total);
    }
  }
  std::vector<CallTotals::WaitedFor> found;
  const bool is_whole = counters.peers_lock.read([&] {
    found.clear();
    for (const CallCounters::Peer& peer : counters.peers) {
      const uint64_t rank = peer.rank.load(std::memory_order_acquire);
      const uint64_t ns = peer.ns.load(std::memory_order_acquire);
      const uint64_t too_many_ns = peer.too_many_ns.load(std::memory_order_acquire);
      if (rank != 0) found.push_back({static_cast<Rank>(rank - 1), to_seconds(ns), to_seconds(too_many_ns)});
    }
  });
  if (is_whole) totals.waited_for = std::move(found);
  std::ranges::sort(totals.waited_for, std::greater<>(), &CallTotals::WaitedFor::seconds);
  return totals;
}

}  // namespace ccom
