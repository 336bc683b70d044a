// SPDX-License-Identifier: Apache-2.0
//
// Sums of `inputs` vectors into `outputs` vectors of `bytes` each, on one core, in and beyond the caches; the outputs
// written as usual or past the caches, rounded to nearest even or stochastically.
//
// bytes_per_second counts every input and output byte once. of_memcpy divides it by the same figure of a memcpy that
// moves as many bytes in the same memory, half of them read and half written: both are the best of several alternating
// rounds.
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

// Inputs and outputs start on cache lines and are a page and some lines apart, so that they do not compete for the same
// cache sets.
class Buffers {
 public:
  Buffers(size_t inputs, size_t outputs, size_t bytes) {
    const size_t apart = (bytes + 63) / 64 * 64 + 4096 + 320;
    memory_.assign((inputs + outputs) * apart + 64, std::byte{0x3c});  // a moderate number of every type
    std::byte* const first = begin();
    for (size_t k = 0; k < inputs; ++k) inputs_.push_back(first + k * apart);
    for (size_t m = 0; m < outputs; ++m) outputs_.push_back(first + (inputs + m) * apart);
  }
  std::span<const std::byte* const> inputs() const { return inputs_; }
  std::span<std::byte* const> outputs() const { return outputs_; }
  std::byte* begin() { return memory_.data() + (-reinterpret_cast<uintptr_t>(memory_.data()) % 64); }

 private:
  std::vector<std::byte> memory_;
  std::vector<const std::byte*> inputs_;
  std::vector<std::byte*> outputs_;
};

// CPU time of this thread, because the machine may be shared.
double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

template <class Work>
double seconds_of(size_t repetitions, const Work& work) {
  const double start = cpu_seconds();
  for (size_t i = 0; i < repetitions; ++i) {
    work();
    benchmark::ClobberMemory();
  }
  return cpu_seconds() - start;
}

struct Case {
  DataType type;
  ccom::Rounding rounding;
  bool streams;
};

void sum(benchmark::State& state, const Case& which) {
  const auto inputs = static_cast<size_t>(state.range(0));
  const auto outputs = static_cast<size_t>(state.range(1));
  const auto bytes = static_cast<size_t>(state.range(2));
  Buffers buffers(inputs, outputs, bytes);
  const ccom::Reducer reducer({.type = which.type, .rounding = which.rounding});
  const auto reduce = [&] {
    reducer(buffers.inputs(), buffers.outputs(), bytes / ccom::size_of(which.type), which.streams ? outputs : 0);
  };
  const size_t moved = (inputs + outputs) * bytes;
  const auto copy = [&] { std::memcpy(buffers.begin() + moved / 2, buffers.begin(), moved / 2); };

  constexpr int kRounds = 9;
  const size_t repetitions = 1 + (size_t{8} << 20) / std::max<size_t>(moved, 256);
  double best_copy = 1e9;
  double best_reduce = 1e9;
  for (int round = 0; round < kRounds; ++round) {
    best_copy = std::min(best_copy, seconds_of(repetitions, copy));
    best_reduce = std::min(best_reduce, seconds_of(repetitions, reduce));
  }
  for (auto _ : state) {
    reduce();
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(static_cast<int64_t>(moved) * state.iterations());
  state.counters["best"] = benchmark::Counter(static_cast<double>(moved * repetitions) / best_reduce,
                                              benchmark::Counter::kDefaults, benchmark::Counter::kIs1024);
  state.counters["of_memcpy"] = best_copy / best_reduce;
}

void add(const std::string& name, const Case& which, std::vector<int64_t> sizes) {
  benchmark::RegisterBenchmark(name.c_str(), [which](benchmark::State& state) { sum(state, which); })
      ->ArgNames({"inputs", "outputs", "bytes"})
      ->ArgsProduct({{2, 4, 8}, {1, 2, 4}, std::move(sizes)})
      ->MinTime(0.05);
}

}  // namespace

int main(int argc, char** argv) {
  using enum DataType;
  using enum ccom::Rounding;
  const std::vector<int64_t> cached = {8, 64 << 10, 1 << 20, 64 << 20};
  const std::vector<int64_t> streaming = {1 << 20, 64 << 20};
  for (const DataType type : {Float32, Bfloat16, Float16, Float8e4m3, Float8e5m2, Int32}) {
    const std::string name(ccom::name_of(type));
    add("sum/" + name, {type, NearestEven, false}, cached);
    add("streaming/" + name, {type, NearestEven, true}, streaming);
    if (type == Float32 || type == Int32) continue;
    add("stochastic/" + name, {type, Stochastic, false}, cached);
  }
  benchmark::AddCustomContext("instruction set", ccom::kernel_target());
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
