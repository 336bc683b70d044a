// SPDX-License-Identifier: Apache-2.0
//
// The operator of a row: one of ccom's, or one that is created for it.
#pragma once

#include <ccom/ccom.h>

#include <cstddef>

#include "bench/expected.h"
#include "bench/launch/outcome.h"

namespace ccom::bench {

// Exists while the row needs it. The communicator outlives it.
class Operator {
 public:
  explicit Operator(ccomComm_t comm) : comm_(comm) {}
  ~Operator() {
    if (created_) ccomRedOpDestroy(op_, comm_);
  }
  Operator(const Operator&) = delete;
  Operator& operator=(const Operator&) = delete;

  // All ranks create theirs in the same order.
  launch::Outcome create(const Pattern& pattern, int rank);
  ccomRedOp_t get() const { return op_; }

 private:
  ccomComm_t comm_;
  ccomRedOp_t op_ = ccomSum;
  bool created_ = false;
};

// The functions behind `user`, which adds as ccomSum does, and `user-ordered` (codecs.h). For ccomRedOpCreate.
extern "C" {
ccomResult_t ccom_bench_add(const void* in, void* inout, size_t count, ccomDataType_t type, void* context);
ccomResult_t ccom_bench_compose(const void* in, void* inout, size_t count, ccomDataType_t type, void* context);
}

}  // namespace ccom::bench
