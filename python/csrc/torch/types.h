// SPDX-License-Identifier: Apache-2.0
//
// Maps torch's types, operators and errors to ccom's.
#pragma once

#include <ATen/ATen.h>
#include <ccom/ccom.h>

#include <stdexcept>
#include <string>
#include <torch/csrc/distributed/c10d/Types.hpp>

namespace ccom_torch {

// How elements of a torch type are counted in ccom: `factor` elements of `type` each.
struct Elements {
  ccomDataType_t type;
  size_t factor = 1;
};
// For reductions. Throws for types without arithmetic (quantized, bits).
Elements arithmetic_elements(at::ScalarType type);
// For data movement: any type, as bytes if ccom has no equivalent.
Elements moved_elements(at::ScalarType type);

// A reduce operator for calls on `comm`. Owns the operator created for a premultiplied sum.
class Operator {
 public:
  Operator(const c10d::ReduceOp& op, at::ScalarType type, ccomComm_t comm);
  ~Operator();
  Operator(const Operator&) = delete;
  Operator& operator=(const Operator&) = delete;
  ccomRedOp_t get() const { return op_; }

 private:
  ccomRedOp_t op_ = ccomSum;
  ccomComm_t made_for_ = nullptr;  // null: nothing was created
};

// A ccom call that failed; what() is ccom's text, without function names.
class CallFailed : public std::runtime_error {
 public:
  CallFailed(ccomResult_t result, const ccomErrorInfo_t& info);
  const ccomErrorInfo_t& info() const { return info_; }

 private:
  ccomErrorInfo_t info_;
};

// Throws CallFailed unless `result` is ccomSuccess. `comm` may be null.
void check(ccomResult_t result, ccomComm_t comm);
// The same for an error reported later on another thread: only the communicator has the details.
void check_later(ccomResult_t result, ccomComm_t comm);
// Throws DistBackendError, as torch's users expect from a backend.
[[noreturn]] void raise(const std::string& text);

}  // namespace ccom_torch
