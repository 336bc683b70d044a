// SPDX-License-Identifier: Apache-2.0
#include "observe/call_counters.h"

#include <algorithm>

namespace ccom {

namespace {

using Peer = CallCounters::Peer;
using Wait = CallCounters::Wait;

uint64_t loaded(const std::atomic<uint64_t>& word) { return word.load(std::memory_order_acquire); }
void store_in(std::atomic<uint64_t>& word, uint64_t number) { word.store(number, std::memory_order_release); }
void increase(std::atomic<uint64_t>& word, uint64_t more) { store_in(word, loaded(word) + more); }

uint64_t place_of(const Wait& wait) { return wait.site | static_cast<uint64_t>(wait.collective) << 32; }

void begin_place(Peer& entry, uint64_t place) {
  store_in(entry.place, place);
  for (std::atomic<uint64_t>* word : {&entry.place_ns, &entry.place_waits, &entry.longest_ns, &entry.longest_call})
    store_in(*word, 0);
}

// Boyer and Moore's vote ("MJRTY: A Fast Majority Vote Algorithm", 1981), weighted by time: a place with more than half
// of it is the one that is left. Its own figures count from when it became the candidate last.
void vote(Peer& entry, const Wait& wait) {
  const uint64_t votes = loaded(entry.votes_ns);
  if (loaded(entry.place) != place_of(wait)) {
    if (votes > 0 && votes >= wait.ns) return store_in(entry.votes_ns, votes - wait.ns);
    begin_place(entry, place_of(wait));
    store_in(entry.votes_ns, wait.ns - votes);
  } else {
    store_in(entry.votes_ns, votes + wait.ns);
  }
  increase(entry.place_ns, wait.ns);
  increase(entry.place_waits, 1);
  if (wait.ns < loaded(entry.longest_ns)) return;
  store_in(entry.longest_ns, wait.ns);
  store_in(entry.longest_call, wait.call == CallCounters::kNoNumber ? 0 : wait.call);
}

}  // namespace

// Space-saving (Metwally, Agrawal, El Abbadi: "Efficient Computation of Frequent and Top-k Elements in Data Streams",
// ICDT 2005): a rank that is not in the full table takes the place, and the time, of the one with the least.
void CallCounters::count_wait(const Wait& wait) {
  add(cells[static_cast<size_t>(wait.collective)][size_class(wait.bytes)].waited_ns, wait.ns);
  if (wait.peer < 0) return;
  const uint64_t wanted = static_cast<uint64_t>(wait.peer) + 1;
  const auto rank_of = [](const Peer& entry) { return entry.rank.load(std::memory_order_relaxed); };
  const auto ns_of = [](const Peer& entry) { return entry.ns.load(std::memory_order_relaxed); };
  Peer* entry = std::ranges::find(peers, wanted, rank_of);
  if (entry == peers.end()) entry = std::ranges::find(peers, uint64_t{0}, rank_of);
  if (entry == peers.end()) entry = std::ranges::min_element(peers, {}, ns_of);
  const uint64_t before = ns_of(*entry), owner = rank_of(*entry);
  peers_lock.write([&] {
    if (owner != wanted) {
      store_in(entry->too_many_ns, before);
      store_in(entry->waits, 0);
      store_in(entry->votes_ns, 0);
      store_in(entry->place, UINT64_MAX);  // nowhere
    }
    store_in(entry->rank, wanted);
    store_in(entry->ns, before + wait.ns);
    increase(entry->waits, 1);
    vote(*entry, wait);
  });
}

namespace {

double to_seconds(uint64_t ns) { return static_cast<double>(ns) * 1e-9; }

CallTotals::Of total_of(const CallCounters::Cell& cell, size_t collective, size_t size_class) {
  const uint64_t timed = loaded(cell.timed), calls = std::max(loaded(cell.calls), timed);
  CallTotals::Of total{static_cast<Collective>(collective), size_class, calls, loaded(cell.bytes)};
  total.waited_seconds = to_seconds(loaded(cell.waited_ns));
  total.is_exact = timed == calls;
  total.timed = timed;
  total.timed_seconds = to_seconds(loaded(cell.ns));
  if (timed > 0) total.seconds = total.timed_seconds * static_cast<double>(calls) / static_cast<double>(timed);
  return total;
}

CallTotals::WaitedFor total_of(const Peer& peer) {
  const uint64_t place = loaded(peer.place);
  CallTotals::WaitedFor total{static_cast<Rank>(loaded(peer.rank) - 1), to_seconds(loaded(peer.ns)),
                              to_seconds(loaded(peer.too_many_ns)), loaded(peer.waits)};
  // Others read it from memory in which anything may stand.
  if (const uint64_t collective = place >> 32; collective < CallCounters::kCollectives)
    total.collective = static_cast<Collective>(collective);
  total.site = static_cast<uint32_t>(place);
  total.place_seconds = to_seconds(loaded(peer.place_ns));
  total.place_waits = loaded(peer.place_waits);
  total.longest_seconds = to_seconds(loaded(peer.longest_ns));
  total.longest_call = loaded(peer.longest_call);
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
      if (const CallTotals::WaitedFor total = total_of(peer); total.rank >= 0) found.push_back(total);
    }
  });
  if (is_whole) totals.waited_for = std::move(found);
  std::ranges::sort(totals.waited_for, std::greater<>(), &CallTotals::WaitedFor::seconds);
  return totals;
}

}  // namespace ccom
