// SPDX-License-Identifier: Apache-2.0
#include "node/own_memory.h"

#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "base/fork.h"
#include "base/time.h"
#include "kernels/kernels.h"

namespace ccom {
namespace {

constexpr size_t kPiece = size_t{16} << 10;                                  // in the first cache
constexpr size_t kStretch = 4 * kPiece;                                      // timed at once
constexpr size_t kProbeFrom = size_t{2} << 20, kProbeTo = size_t{32} << 20;  // whatever caches say
constexpr int kReads = 8;
constexpr double kSteady = 0.97;              // the least part of what the pass before has measured
constexpr int64_t kMostPassesNs = 1'600'000;  // of three kinds: 5 ms
constexpr size_t kOneRead = size_t{4} << 10, kOtherRead = size_t{128} << 10;

struct Unmap {
  size_t size_bytes = 0;
  void operator()(std::byte* memory) const { ::munmap(memory, size_bytes); }
};
using Pages = std::unique_ptr<std::byte, Unmap>;

Pages pages(size_t size_bytes) {
  void* const memory = ::mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return Pages(memory == MAP_FAILED ? nullptr : static_cast<std::byte*>(memory), Unmap{size_bytes});
}

// The least of so many times: whatever else runs makes it longer.
template <class Run>
double least_ns(int times, Run run) {
  double least = 0;
  for (int i = 0; i < times; ++i) {
    const int64_t begin = monotonic_ns();
    run();
    const auto ns = static_cast<double>(monotonic_ns() - begin);
    if (i == 0 || ns < least) least = ns;
  }
  return least;
}

double median(std::vector<double> figures) {
  const auto middle = figures.begin() + static_cast<ptrdiff_t>(figures.size() / 2);
  std::nth_element(figures.begin(), middle, figures.end());
  return *middle;
}

// From one place to the other, piece by piece; one of them stays in the first cache. Each stretch takes the least of
// its times in several passes, and the median of all stretches is taken: a process that loses its core loses it in a
// few stretches. Passes end when one of them has changed little, or with their time.
template <class Copy>
double byte_ns(size_t size_bytes, Copy copy) {
  const int64_t end_ns = monotonic_ns() + kMostPassesNs;
  std::vector<double> stretch_ns(size_bytes / kStretch, std::numeric_limits<double>::max());
  double before = 0, now = 0;
  for (int pass = 0; pass < 2 || (now < kSteady * before && monotonic_ns() < end_ns); ++pass) {
    for (size_t stretch = 0; stretch < stretch_ns.size(); ++stretch) {
      const double ns = least_ns(1, [&] {
        for (size_t piece = 0; piece < kStretch; piece += kPiece) copy(stretch * kStretch + piece);
      });
      stretch_ns[stretch] = std::min(stretch_ns[stretch], ns);
    }
    before = std::exchange(now, median(stretch_ns));
  }
  return now / static_cast<double>(kStretch);
}

// Of this process: what the kernel does is the same for another one.
double read_ns(std::byte* to, std::byte* from, size_t size_bytes) {
  const iovec here{to, size_bytes}, there{from, size_bytes};
  bool has_read = true;
  const double ns = least_ns(kReads, [&] {
    has_read &= ::process_vm_readv(::getpid(), &here, 1, &there, 1, 0) == static_cast<ssize_t>(size_bytes);
  });
  return has_read ? ns : 0;
}

void measure_reads(std::byte* to, std::byte* from, OwnCosts& costs) {
  std::memcpy(to, from, kOtherRead);
  const double copy_ns = least_ns(kReads, [&] { std::memcpy(to, from, kOtherRead); });
  const double a_short = read_ns(to, from, kOneRead), a_long = read_ns(to, from, kOtherRead);
  if (a_short == 0 || a_long <= a_short) return;
  const double byte_ns = (a_long - a_short) / static_cast<double>(kOtherRead - kOneRead);
  costs.read_call_ns = std::max(a_short - byte_ns * static_cast<double>(kOneRead), 1.0);
  costs.read_byte_ns = std::max(byte_ns - copy_ns / static_cast<double>(kOtherRead), 1e-3);
}

}  // namespace

OwnCosts measure_own_costs(size_t second_cache_bytes) {
  const size_t size_bytes = std::clamp(4 * second_cache_bytes, kProbeFrom, kProbeTo) / kStretch * kStretch;
  const Pages memory = pages(size_bytes + kPiece);
  if (memory == nullptr) return {};
  std::byte* const far = memory.get();
  std::byte* const near = far + size_bytes;
  std::memset(far, 1, size_bytes + kPiece);
  OwnCosts costs;
  costs.far_load_ns = byte_ns(size_bytes, [&](size_t at) { std::memcpy(near, far + at, kPiece); });
  costs.far_store_ns = byte_ns(size_bytes, [&](size_t at) { std::memcpy(far + at, near, kPiece); });
  costs.streamed_store_ns = byte_ns(size_bytes, [&](size_t at) { copy_streaming(far + at, near, kPiece); });
  measure_reads(far, far + size_bytes / 2, costs);
  return costs;
}

OwnCosts own_costs(size_t second_cache_bytes, bool& is_new) {
  static constinit MadeOnce<OwnCosts> costs;
  return costs.get([&] {
    is_new = true;
    return measure_own_costs(second_cache_bytes);
  });
}

}  // namespace ccom
