// SPDX-License-Identifier: Apache-2.0
//
// A random collective call of the soak, with the memory for it and the oracle of ccom-bench (bench/expected.h).
#pragma once

#include <random>
#include <string>

#include "bench/buffers.h"
#include "bench/cases.h"
#include "bench/operator.h"

namespace ccom {

// Any collective, type, operator, root and place; 0 to `most_bytes` bytes, every power of two as often as another.
bench::Case random_case(std::mt19937_64& random, int ranks, size_t most_bytes);

class SoakCall {
 public:
  enum class Memory { Ordinary, Mapped, Registered };
  // What ranks may choose for themselves.
  struct Placement {
    Memory memory = Memory::Ordinary;
    size_t unalign_send = 0;
    size_t unalign_recv = 0;
  };

  SoakCall(const bench::Case& what, const Placement& placement, int rank, uint64_t seed, ccomComm_t comm);
  ~SoakCall();
  SoakCall(const SoakCall&) = delete;
  SoakCall& operator=(const SoakCall&) = delete;

  launch::Outcome allocate();
  // Writes the input of that iteration, and something else into the output.
  void fill(uint64_t iteration);
  ccomResult_t issue(ccomStream_t stream);
  // What is wrong with the result, with the input that must stay, with the bytes around them; "" if nothing is.
  std::string fault(uint64_t iteration) const;
  // Whether all ranks must have bitwise the same output, and its hash.
  bool is_equal_everywhere() const;
  uint64_t hash() const;

 private:
  bench::Stretch input(uint64_t iteration) const;
  launch::Outcome take(bench::Area& area, size_t bytes, size_t unalign, void*& handle);

  const bench::Case what_;
  const Placement placement_;
  const int rank_;
  const bench::Layout layout_;
  const bench::Counts counts_;
  bench::Pattern pattern_;
  const ccomComm_t comm_;
  bench::Area send_area_, recv_area_;
  void* send_handle_ = nullptr;  // of their registrations
  void* recv_handle_ = nullptr;
  std::byte* send_ = nullptr;
  std::byte* recv_ = nullptr;
  bench::Operator op_;
};

}  // namespace ccom
