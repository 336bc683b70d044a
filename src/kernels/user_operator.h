// SPDX-License-Identifier: Apache-2.0
//
// A reduction operator that is a function of the user's: how it is applied to many inputs and outputs, and how its
// failure gets out of a reduction.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "base/mutex.h"
#include "base/status.h"
#include "base/types.h"

namespace ccom {

// Thread-safe, as far as the function is.
class UserOperator {
 public:
  // inout[i] = in[i] op inout[i], for `count` elements. Both begin at multiples of the element's size; they do not
  // overlap. Throws nothing.
  using Apply = std::function<Status(const std::byte* in, std::byte* inout, size_t count, DataType type)>;

  // number: among the operators of the communicator, equal on all ranks.
  UserOperator(Apply apply, bool is_commutative, uint16_t number)
      : apply_(std::move(apply)), op_(is_commutative ? ReduceOp::User : ReduceOp::UserOrdered), number_(number) {}
  UserOperator(const UserOperator&) = delete;
  UserOperator& operator=(const UserOperator&) = delete;

  ReduceOp op() const { return op_; }
  uint16_t number() const { return number_; }

  // outputs[m][i] = inputs[0][i] op (inputs[1][i] op (...)); one input is copied. Any alignment; outputs may equal
  // inputs, as for Reducer. After a failure the function is not called again, and outputs are unspecified.
  void combine(std::span<const std::byte* const> inputs, std::span<std::byte* const> outputs, size_t count,
               DataType type);

  bool has_failed() const { return has_failed_.load(std::memory_order_acquire); }
  // The first error of the function; Ok without one.
  Status failure() const;

 private:
  void apply(const std::byte* in, std::byte* inout, size_t count, DataType type);

  const Apply apply_;
  const ReduceOp op_;
  const uint16_t number_;
  std::atomic<bool> has_failed_{false};
  mutable Mutex mutex_;
  Status failure_ CCOM_GUARDED_BY(mutex_);
};

}  // namespace ccom
