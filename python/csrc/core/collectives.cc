// SPDX-License-Identifier: Apache-2.0
#include "collectives.h"

#include "calls.h"
#include "documentation.h"
#include "operators.h"
#include "results.h"

namespace ccom_core {
namespace {

using namespace nb::literals;

// `out` of a call that may also be asked to write to its array.
nb::handle target(nb::handle array, nb::handle out, bool inplace) {
  if (inplace && !out.is_none()) throw nb::value_error("inplace: the result goes to array or to out, not to both");
  return inplace ? array : out;
}

// What is written where the array itself is: read once, so that a small call stays cheap.
Result result_beside(const Array& sent, nb::handle array, nb::handle out) {
  if (out.is(array)) return {nb::borrow(array), Array()};
  return result_for(out, sent.shape(), sent.type());
}

nb::object all_reduce(Communicator& self, nb::handle array, nb::handle op, nb::handle out, bool inplace,
                      nb::handle residual, bool blocking) {
  out = target(array, out, inplace);
  Array sent(array, "array", out.is(array));
  const ccomRedOp_t reduction = op_of(op, self);
  Result result = result_beside(sent, array, out);
  const void* const from = sent.data();
  void* const to = out.is(array) ? sent.data() : result.array.data();
  const size_t count = sent.count();
  const ccomDataType_t type = sent.type();
  if (residual.is_none()) {
    return carry_out(
        self, blocking, std::move(result.object),
        [=](ccomComm_t comm, ccomStream_t stream) {
          return ccomAllReduce(from, to, count, type, reduction, comm, stream);
        },
        sent, result.array);
  }
  Array rest(residual, "residual", true);
  if (rest.type() != ccomFloat32 || rest.count() != count)
    throw nb::value_error(("residual: needs " + std::to_string(count) + " elements of float32").c_str());
  void* const lost = rest.data();
  return carry_out(
      self, blocking, std::move(result.object),
      [=](ccomComm_t comm, ccomStream_t stream) {
        return ccomAllReduceResidual(from, to, lost, count, type, reduction, comm, stream);
      },
      sent, result.array, rest);
}

nb::object reduce(Communicator& self, nb::handle array, nb::handle op, int root, nb::handle out, bool inplace,
                  bool blocking) {
  const bool is_root = root == self.rank();
  out = is_root ? target(array, out, inplace) : array;
  Array sent(array, "array", is_root && out.is(array));
  const ccomRedOp_t reduction = op_of(op, self);
  Result result = result_beside(sent, array, out);
  const void* const from = sent.data();
  void* const to = out.is(array) ? sent.data() : result.array.data();
  return carry_out(
      self, blocking, is_root ? std::move(result.object) : nb::none(),
      [=, count = sent.count(), type = sent.type()](ccomComm_t comm, ccomStream_t stream) {
        return ccomReduce(from, is_root ? to : nullptr, count, type, reduction, root, comm, stream);
      },
      sent, result.array);
}

nb::object broadcast(Communicator& self, nb::handle array, int root, nb::handle out, bool blocking) {
  const bool is_root = root == self.rank();
  if (!is_root && !out.is_none()) array = out;
  Array sent(array, "array", !is_root);
  Result result{nb::borrow(array), Array()};
  if (is_root && !out.is_none()) result = result_beside(sent, array, out);
  const void* const from = sent.data();
  void* const to = is_root && !out.is_none() && !out.is(array) ? result.array.data() : sent.data();
  return carry_out(
      self, blocking, std::move(result.object),
      [=, count = sent.count(), type = sent.type()](ccomComm_t comm, ccomStream_t stream) {
        return ccomBroadcast(from, to, count, type, root, comm, stream);
      },
      sent, result.array);
}

int64_t rows_of(const Array& array) { return array.shape().empty() ? 1 : array.shape()[0]; }

nb::object all_gather(Communicator& self, nb::handle array, nb::handle out, bool blocking) {
  Array sent(array, "array", false);
  Result result = result_for(out, with_rows(sent.shape(), self.size() * rows_of(sent)), sent.type());
  return carry_out(
      self, blocking, std::move(result.object),
      [from = sent.data(), to = result.array.data(), count = sent.count(), type = sent.type()](
          ccomComm_t comm, ccomStream_t stream) { return ccomAllGather(from, to, count, type, comm, stream); },
      sent, result.array);
}

nb::object gather(Communicator& self, nb::handle array, int root, nb::handle out, bool blocking) {
  const bool is_root = root == self.rank();
  Array sent(array, "array", false);
  Result result{nb::none(), Array()};
  if (is_root) result = result_for(out, with_rows(sent.shape(), self.size() * rows_of(sent)), sent.type());
  return carry_out(
      self, blocking, std::move(result.object),
      [=, from = sent.data(), to = result.array.data(), count = sent.count(), type = sent.type()](
          ccomComm_t comm, ccomStream_t stream) { return ccomGather(from, to, count, type, root, comm, stream); },
      sent, result.array);
}

nb::object reduce_scatter(Communicator& self, nb::handle array, nb::handle op, nb::handle out, bool blocking) {
  Array sent(array, "array", false);
  const ccomRedOp_t reduction = op_of(op, self);
  const Sizes shape = with_rows(sent.shape(), rows_of_part(sent, "array", self.size()));
  Result result = result_for(out, shape, sent.type());
  return carry_out(
      self, blocking, std::move(result.object),
      [=, from = sent.data(), to = result.array.data(), count = result.array.count(), type = sent.type()](
          ccomComm_t comm, ccomStream_t stream) {
        return ccomReduceScatter(from, to, count, type, reduction, comm, stream);
      },
      sent, result.array);
}

nb::object scatter(Communicator& self, nb::handle array, int root, nb::handle out, bool blocking) {
  const bool is_root = root == self.rank();
  if (!is_root && out.is_none()) throw nb::type_error("out: needed on every rank but root, which alone has array");
  Array sent;
  if (is_root) sent = Array(array, "array", false);
  Result result{nb::none(), Array()};
  if (is_root) {
    result = result_for(out, with_rows(sent.shape(), rows_of_part(sent, "array", self.size())), sent.type());
  } else {
    result = {nb::borrow(out), Array(out, "out", true)};
  }
  return carry_out(
      self, blocking, std::move(result.object),
      [=, from = sent.data(), to = result.array.data(), count = result.array.count(), type = result.array.type()](
          ccomComm_t comm, ccomStream_t stream) { return ccomScatter(from, to, count, type, root, comm, stream); },
      sent, result.array);
}

nb::object all_to_all(Communicator& self, nb::handle array, nb::handle out, bool inplace, bool blocking) {
  out = target(array, out, inplace);
  Array sent(array, "array", out.is(array));
  const size_t count = static_cast<size_t>(rows_of_part(sent, "array", self.size())) * elements_of_row(sent.shape());
  Result result = result_beside(sent, array, out);
  void* const to = out.is(array) ? sent.data() : result.array.data();
  return carry_out(
      self, blocking, std::move(result.object),
      [=, from = sent.data(), type = sent.type()](ccomComm_t comm, ccomStream_t stream) {
        return ccomAlltoAll(from, to, count, type, comm, stream);
      },
      sent, result.array);
}

nb::object barrier(Communicator& self, bool blocking) {
  return carry_out(self, blocking, nb::none(),
                   [](ccomComm_t comm, ccomStream_t stream) { return ccomBarrier(comm, stream); });
}

}  // namespace

void add_collectives(nb::class_<Communicator>& type) {
  type.def("all_reduce", &all_reduce, "array"_a, "op"_a = "sum", nb::kw_only(), "out"_a = nb::none(),
           "inplace"_a = false, "residual"_a = nb::none(), "blocking"_a = true, documentation::kAllReduce);
  type.def("reduce", &reduce, "array"_a, "op"_a = "sum", "root"_a = 0, nb::kw_only(), "out"_a = nb::none(),
           "inplace"_a = false, "blocking"_a = true, documentation::kReduce);
  type.def("broadcast", &broadcast, "array"_a.none(), "root"_a = 0, nb::kw_only(), "out"_a = nb::none(),
           "blocking"_a = true, documentation::kBroadcast);
  type.def("all_gather", &all_gather, "array"_a, nb::kw_only(), "out"_a = nb::none(), "blocking"_a = true,
           documentation::kAllGather);
  type.def("gather", &gather, "array"_a, "root"_a = 0, nb::kw_only(), "out"_a = nb::none(), "blocking"_a = true,
           documentation::kGather);
  type.def("reduce_scatter", &reduce_scatter, "array"_a, "op"_a = "sum", nb::kw_only(), "out"_a = nb::none(),
           "blocking"_a = true, documentation::kReduceScatter);
  type.def("scatter", &scatter, "array"_a.none(), "root"_a = 0, nb::kw_only(), "out"_a = nb::none(),
           "blocking"_a = true, documentation::kScatter);
  type.def("all_to_all", &all_to_all, "array"_a, nb::kw_only(), "out"_a = nb::none(), "inplace"_a = false,
           "blocking"_a = true, documentation::kAllToAll);
  type.def("barrier", &barrier, nb::kw_only(), "blocking"_a = true, documentation::kBarrier);
}

}  // namespace ccom_core
