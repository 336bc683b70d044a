// SPDX-License-Identifier: Apache-2.0
//
// Reductions by name, and operators that are functions of Python's.
#pragma once

#include <ccom/ccom.h>
#include <nanobind/nanobind.h>

#include <deque>

namespace ccom_core {

namespace nb = nanobind;

class Communicator;

// A function f(a, b) for elements of arrays a and b. Of numpy's ufuncs f(a, b, out=b) is called.
struct OperatorFunction {
  nb::object function;
  bool is_ufunc = false;
};

// Those of one communicator: ccom may call them as long as it exists.
using Operators = std::deque<OperatorFunction>;

// What Communicator.create_op and premultiplied_sum return.
class Operator {
 public:
  Operator(nb::object communicator, ccomRedOp_t op) : communicator_(std::move(communicator)), op_(op) {}
  ccomRedOp_t op_of(const Communicator& communicator) const;  // raises ValueError if it is another one's
  void destroy();

 private:
  nb::object communicator_;
  ccomRedOp_t op_;
  bool is_destroyed_ = false;
};

// "sum", a ufunc of numpy's that ccom has under another name, or an Operator.
ccomRedOp_t op_of(nb::handle op, const Communicator& communicator);

Operator create_op(Communicator& communicator, nb::object function, bool commutative);
Operator premultiplied_sum(Communicator& communicator, nb::object scalar, nb::handle dtype);

}  // namespace ccom_core
