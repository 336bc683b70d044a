// SPDX-License-Identifier: Apache-2.0
//
// The allreduce that vLLM has for the ranks of a host without accelerators, as a library for bench/torch_compare. Its
// own package has it for processors with AVX-512 alone. Written anew after what vLLM's csrc/cpu/shm.cpp does, for one
// thread a rank:
//
//   Each rank has a buffer of two halves that all map, and a stamp. A call copies its data to one half, past the
//   caches, sets the stamp, spins until those of all others are as far, and adds their halves to its data in float. The
//   next call takes the other half: who sets its stamp for that has read all halves of the call before, so there is no
//   second barrier. Data longer than a half are so many calls.
#include <fcntl.h>
#include <immintrin.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>

namespace {

constexpr int kMostRanks = 8;
constexpr size_t kHalf = size_t{1} << 20;

struct Shown {
  alignas(64) std::atomic<uint64_t> stamp;
  alignas(64) std::byte halves[2][kHalf];
};

float widened(float value) { return value; }
float widened(uint16_t bits) {
  const uint32_t wide = static_cast<uint32_t>(bits) << 16;
  float value;
  std::memcpy(&value, &wide, sizeof value);
  return value;
}

void narrow(float value, float& to) { to = value; }
void narrow(float value, uint16_t& to) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  to = static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

void store_past_caches(std::byte* to, const std::byte* from, size_t bytes) {
  size_t done = 0;
#ifdef __AVX2__
  for (; done + 32 <= bytes; done += 32) {
    const auto value = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + done));
    _mm256_stream_si256(reinterpret_cast<__m256i*>(to + done), value);
  }
#endif
  std::memcpy(to + done, from + done, bytes - done);
  _mm_sfence();
}

class Sums {
 public:
  Sums(Shown* all, int rank, int ranks) : all_(all), rank_(rank), ranks_(ranks) {}

  template <typename T>
  void add(T* data, size_t count) {
    switch (ranks_) {
      case 2: return add_others<T, 1>(data, count);
      case 3: return add_others<T, 2>(data, count);
      case 4: return add_others<T, 3>(data, count);
      case 8: return add_others<T, 7>(data, count);
      default: return;
    }
  }

 private:
  template <typename T, int others>
  void add_others(T* data, size_t count) {
    for (size_t now; count > 0; data += now, count -= now) {
      now = std::min(count, kHalf / sizeof(T));
      const uint64_t stamp = ++stamp_;
      Shown& mine = all_[rank_];
      store_past_caches(mine.halves[stamp % 2], reinterpret_cast<const std::byte*>(data), now * sizeof(T));
      mine.stamp.store(stamp, std::memory_order_release);
      std::array<const T*, others> theirs;
      for (int i = 0; i < others; ++i) {
        const Shown& other = all_[(rank_ + 1 + i) % ranks_];
        while (other.stamp.load(std::memory_order_acquire) < stamp) _mm_pause();
        theirs[static_cast<size_t>(i)] = reinterpret_cast<const T*>(other.halves[stamp % 2]);
      }
#pragma GCC ivdep
      for (size_t i = 0; i < now; ++i) {
        float sum = widened(data[i]);
        for (const T* from : theirs) sum += widened(from[i]);
        narrow(sum, data[i]);
      }
    }
  }

  Shown* const all_;
  const int rank_, ranks_;
  uint64_t stamp_ = 0;
};

}  // namespace

extern "C" {

// Of a file in memory, of zeros or not there yet. Null: an error of the system, or a number of ranks that is not known.
void* vllm_sum_open(const char* path, int rank, int ranks) {
  if (ranks != 2 && ranks != 3 && ranks != 4 && ranks != kMostRanks) return nullptr;
  const int file = open(path, O_RDWR | O_CREAT, 0600);
  const size_t bytes = sizeof(Shown) * static_cast<size_t>(ranks);
  void* mapped = MAP_FAILED;
  if (file >= 0 && ftruncate(file, static_cast<off_t>(bytes)) == 0)
    mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, file, 0);
  if (file >= 0) close(file);
  return mapped == MAP_FAILED ? nullptr : new Sums(static_cast<Shown*>(mapped), rank, ranks);
}

void vllm_sum_float32(void* sums, float* data, size_t count) { static_cast<Sums*>(sums)->add(data, count); }
void vllm_sum_bfloat16(void* sums, uint16_t* data, size_t count) { static_cast<Sums*>(sums)->add(data, count); }
}
