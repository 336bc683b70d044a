// SPDX-License-Identifier: Apache-2.0
#include "bench/core_pair.h"

#include <sched.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

namespace ccom::bench {
namespace {

using Act = PairMemory::Act;

constexpr size_t kShortPairBytes = size_t{32} << 10;
constexpr size_t kReadBytes = size_t{128} << 10;  // As much as a call asks the kernel for at once.
constexpr size_t kLineStride = 256;               // Lines that the processor does not fetch together.
constexpr size_t kLines = 16;
constexpr uint32_t kRounds = 200;
constexpr auto kPatience = std::chrono::seconds(5);

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// Until the word has reached `number`. Polls, later yields: the two may share a core where they cannot be pinned.
bool reaches(const std::atomic<uint32_t>& word, uint32_t number) {
  constexpr uint64_t kEager = 1 << 10, kPatient = 1 << 16, kPollsPerClock = 1 << 10;
  ProbeClock::time_point end{};
  for (uint64_t polls = 0; static_cast<int32_t>(word.load(std::memory_order_acquire) - number) < 0; ++polls) {
    if (polls > kPatient) ::sched_yield();
    if (polls > kEager) pause();
    if (polls % kPollsPerClock != kPollsPerClock - 1) continue;
    if (end == ProbeClock::time_point{}) end = ProbeClock::now() + kPatience;
    if (ProbeClock::now() > end) return false;
  }
  return true;
}

void load_shared(std::byte* from, size_t size_bytes, bool claims) {
  constexpr size_t kLine = 64;
  load_bytes(from, size_bytes);
  for (size_t at = 0; claims && at < size_bytes; at += kLine) from[at] = {};
}

// Both say that they have arrived and wait for the other.
bool barriers(std::atomic<uint32_t>& own, const std::atomic<uint32_t>& other, uint32_t rounds) {
  const uint32_t first = own.load();
  for (uint32_t i = 1; i <= rounds; ++i) {
    own.store(first + i, std::memory_order_release);
    if (!reaches(other, first + i)) return false;
  }
  return true;
}

class Asker {
 public:
  Asker(PairMemory& memory, const CacheSizes& caches) : memory_(memory), caches_(caches), copy_(kReadBytes) {}

  void ask(Act act, size_t amount = 0) {
    memory_.act = act;
    memory_.amount = amount;
    memory_.asked.value.store(++number_, std::memory_order_release);
  }
  bool answered() const { return reaches(memory_.done.value, number_); }

  std::optional<double> barrier_ns() {
    return median_sample([&]() -> std::optional<double> {
      ask(Act::Barriers, kRounds);
      const ProbeClock::time_point begin = ProbeClock::now();
      if (!barriers(memory_.here.value, memory_.there.value, kRounds)) return std::nullopt;
      const double all = ns_since(begin);
      return answered() ? std::optional(all / kRounds) : std::nullopt;
    });
  }

  // Of `run` here after the other has done `act` with so many bytes.
  template <class Run>
  std::optional<double> after_ns(Act act, size_t bytes, Run run) {
    return median_sample([&]() -> std::optional<double> {
      ask(act, bytes);
      if (!answered()) return std::nullopt;
      const ProbeClock::time_point begin = ProbeClock::now();
      if (!run()) return std::nullopt;
      return ns_since(begin);
    });
  }
  std::optional<double> lines_ns(size_t lines) {
    return after_ns(Act::Store, kLines * kLineStride, [&] {
      for (size_t line = 0; line < lines; ++line)
        static_cast<void>(*static_cast<volatile std::byte*>(memory_.bytes + line * kLineStride));
      std::atomic_thread_fence(std::memory_order_seq_cst);
      return true;
    });
  }
  // Of a byte; by lines that are claimed or not.
  std::optional<ByteCosts> passing_ns(size_t bytes, bool claims) {
    const auto load = after_ns(Act::Store, bytes, [&] { return load_shared(memory_.bytes, bytes, claims), true; });
    const auto store = after_ns(claims ? Act::LoadAndClaim : Act::Load, bytes,
                                [&] { return store_bytes(memory_.bytes, bytes), true; });
    if (!load || !store) return std::nullopt;
    return ByteCosts{.load = *load / static_cast<double>(bytes), .store = *store / static_cast<double>(bytes)};
  }
  std::optional<ByteCosts> passing_ns(size_t bytes) {
    const auto plain = passing_ns(bytes, false), claimed = passing_ns(bytes, true);
    if (!plain || !claimed) return std::nullopt;
    return claimed->load + claimed->store < plain->load + plain->store ? claimed : plain;
  }
  // nullopt also where it is not permitted.
  std::optional<double> read_ns(size_t bytes) {
    return after_ns(Act::StoreOwn, kReadBytes, [&] {
      iovec here{copy_.data(), bytes}, there{reinterpret_cast<void*>(memory_.own_address), bytes};
      return ::process_vm_readv(static_cast<pid_t>(memory_.pid), &here, 1, &there, 1, 0) == static_cast<ssize_t>(bytes);
    });
  }

  // What the first cache holds of kPairBytes costs `near_ns` a byte; of the rest.
  double beyond_first_cache(double byte_ns, double near_ns) const {
    const auto first = static_cast<double>(std::min(caches_.first, kPairBytes / 2));
    const auto all = static_cast<double>(kPairBytes);
    return (byte_ns * all - first * near_ns) / (all - first);
  }

 private:
  PairMemory& memory_;
  const CacheSizes caches_;
  std::vector<std::byte> copy_;
  uint32_t number_ = 0;
};

bool measure_lines(Asker& asker, PairCosts& costs) {
  const auto barrier = asker.barrier_ns();
  const auto none = asker.lines_ns(0), one = asker.lines_ns(1), all = asker.lines_ns(kLines);
  if (!barrier || !none || !one || !all) return false;
  costs.barrier = *barrier;
  costs.line = *one - *none;
  costs.further_line = (*all - *one) / (kLines - 1);
  return true;
}

bool measure_bytes(Asker& asker, PairCosts& costs) {
  const auto near = asker.passing_ns(kShortPairBytes), all = asker.passing_ns(kPairBytes);
  if (!near || !all) return false;
  costs.shared = *near;
  costs.long_shared = {.load = asker.beyond_first_cache(all->load, near->load),
                       .store = asker.beyond_first_cache(all->store, near->store)};
  return true;
}

// A byte that the kernel copies is loaded, from where the other has just stored it, and stored as well.
void measure_reads(Asker& asker, const CacheSizes& caches, double cached_store_ns, PairCosts& costs) {
  const auto call = asker.read_ns(1), copy = asker.read_ns(kReadBytes);
  if (!call || !copy) return;
  const auto bytes = static_cast<double>(kReadBytes), near = static_cast<double>(std::min(caches.first, kReadBytes));
  const double load = near * costs.shared.load + (bytes - near) * costs.long_shared.load;
  costs.read_call = *call;
  costs.read_byte = (*copy - *call - load) / bytes - cached_store_ns;
}

}  // namespace

bool serve_pair(PairMemory& memory) {
  std::vector<std::byte> own(kReadBytes);
  memory.pid = ::getpid();
  memory.own_address = reinterpret_cast<uint64_t>(own.data());
  for (uint32_t number = 1;; ++number) {
    if (!reaches(memory.asked.value, number)) return false;
    const Act act = memory.act;
    bool good = true;
    switch (act) {
      case Act::End: break;
      case Act::Barriers:
        good = barriers(memory.there.value, memory.here.value, static_cast<uint32_t>(memory.amount));
        break;
      case Act::Store: store_bytes(memory.bytes, memory.amount); break;
      case Act::Load:
      case Act::LoadAndClaim: load_shared(memory.bytes, memory.amount, act == Act::LoadAndClaim); break;
      case Act::StoreOwn: store_bytes(own.data(), memory.amount); break;
    }
    if (!good) return false;
    memory.done.value.store(number, std::memory_order_release);
    if (act == Act::End) return true;
  }
}

std::optional<PairCosts> measure_pair_memory(PairMemory& memory, const CacheSizes& caches, double cached_store_ns) {
  PairCosts costs;
  Asker asker(memory, caches);
  if (!measure_lines(asker, costs) || !measure_bytes(asker, costs)) return std::nullopt;
  measure_reads(asker, caches, cached_store_ns, costs);
  asker.ask(Act::End);
  if (!asker.answered()) return std::nullopt;
  return costs;
}

}  // namespace ccom::bench
