// SPDX-License-Identifier: Apache-2.0
//
// Sums of 2, 4 and 8 inputs on one core, in and beyond the caches.
//
// bytes_per_second counts what moves: every input and the output once. of_memcpy divides it by the same figure of a
// memcpy that moves as many bytes, (inputs + 1) / 2 buffers read and as many written, measured just before in the same
// run. `bytes` is the size of one input.
#include "kernels/kernels.h"
#include "base/types.h"

#include <benchmark/benchmark.h>

#include <time.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <string>
#include <vector>

namespace {

using ccom::DataType;

// The inputs and the output, each a page and some lines apart from the last, lest they compete for the same cache sets.
class Buffers {
 public:
  Buffers(size_t inputs, size_t bytes) : memory_((inputs + 1) * (bytes + kApart)) {
    for (size_t k = 0; k <= inputs; ++k) vectors_.push_back(memory_.data() + k * (bytes + kApart));
    for (std::byte& byte : memory_) byte = std::byte{0x3c};  // a moderate number of every type
  }
  std::span<const std::byte* const> inputs() const { return {vectors_.data(), vectors_.size() - 1}; }
  std::byte* output() { return const_cast<std::byte*>(vectors_.back()); }
  std::byte* begin() { return memory_.data(); }

 private:
  static constexpr size_t kApart = 4096 + 320;
  std::vector<std::byte> memory_;
  std::vector<const std::byte*> vectors_;
};

// Of this thread: the machine may have other work.
double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// Bytes moved per second, read and written, by copying one half of `moved` bytes: the best of several rounds.
double memcpy_bytes_per_second(std::byte* memory, size_t moved) {
  double best = 0;
  const size_t repetitions = 1 + (size_t{64} << 20) / moved;
  for (int round = 0; round < 5; ++round) {
    const double start = cpu_seconds();
    for (size_t i = 0; i < repetitions; ++i) {
      std::memcpy(memory + moved / 2, memory, moved / 2);
      benchmark::ClobberMemory();
    }
    best = std::max(best, static_cast<double>(moved * repetitions) / (cpu_seconds() - start));
  }
  return best;
}

void sum(benchmark::State& state, DataType type) {
  const auto inputs = static_cast<size_t>(state.range(0));
  const auto bytes = static_cast<size_t>(state.range(1));
  Buffers buffers(inputs, bytes);
  const size_t moved = (inputs + 1) * bytes;
  const double copy = memcpy_bytes_per_second(buffers.begin(), moved);
  const ccom::Reduction reduction{.type = type};
  const double start = cpu_seconds();
  for (auto _ : state) {
    ccom::reduce(reduction, buffers.inputs(), buffers.output(), bytes / ccom::size_of(type));
    benchmark::ClobberMemory();
  }
  const double rate = static_cast<double>(moved) * static_cast<double>(state.iterations()) / (cpu_seconds() - start);
  state.SetBytesProcessed(static_cast<int64_t>(moved) * state.iterations());
  state.counters["memcpy"] = benchmark::Counter(copy, benchmark::Counter::kDefaults, benchmark::Counter::kIs1024);
  state.counters["of_memcpy"] = rate / copy;
}

}  // namespace

int main(int argc, char** argv) {
  for (const DataType type : {DataType::Float32, DataType::Bfloat16, DataType::Float16, DataType::Float8e4m3,
                              DataType::Float8e5m2, DataType::Int32, DataType::Float64}) {
    const std::string name = "sum/" + std::string(ccom::name_of(type));
    benchmark::RegisterBenchmark(name.c_str(), [type](benchmark::State& state) { sum(state, type); })
        ->ArgNames({"inputs", "bytes"})
        ->ArgsProduct({{2, 4, 8}, {16 << 10, 256 << 10, 8 << 20}});
  }
  benchmark::AddCustomContext("instruction set", ccom::kernel_target());
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
