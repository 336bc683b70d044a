// SPDX-License-Identifier: Apache-2.0
//
// Allreduce of one value among the ranks of a host, neighbours only, some of whom may have nothing to add: one rank's
// steps.
//
// One dimension after another. Two members and rings of four exchange with their neighbours (1 and 2 steps and
// roundings); other rings pass all values on both ways round (size / 2 steps); cores of a device, the last dimension,
// send to one another at once (1 step); the last two sum in order, with one rounding. Every rank computes the same
// expression, which depends on who has something to add and on nothing else.
#pragma once

#include <vector>

#include "algorithms/exchange.h"
#include "algorithms/streams.h"

namespace ccom {

class LocalSum {
 public:
  LocalSum(const Group& group, const std::vector<int>& dims, Exchange& value)
      : group_(group), dims_(dims), value_(value) {}

  // The members whose number is below `adding` have a value each; afterwards all have the sum. `completes`: this is the
  // last one.
  void add(uint32_t adding, bool completes);
  // Numbers members through the devices first, so that a few of them use as many devices' NICs as there are.
  static uint32_t number_of(uint32_t member, const std::vector<int>& dims);
  static uint32_t member_of(uint32_t number, const std::vector<int>& dims);

  // Of one call of add in which everybody adds: combinations in a row.
  static int roundings(const std::vector<int>& dims);

 private:
  // Two members, or a ring of four.
  bool exchanges(uint8_t dim) const { return dims_[dim] == 2 || (dims_[dim] == 4 && dim + size_t{1} < dims_.size()); }
  void exchange(uint8_t dim);
  void exchange_with(uint32_t partner);
  void gather(uint8_t dim);
  bool completed(uint32_t values) const { return completes_ && values == total_; }

  const Group& group_;
  const std::vector<int>& dims_;
  Exchange& value_;
  std::vector<uint32_t> values_;  // by member: how many values its own is the sum of
  uint32_t total_ = 0;
  bool completes_ = false;
};

}  // namespace ccom
