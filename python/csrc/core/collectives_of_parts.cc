// SPDX-License-Identifier: Apache-2.0
//
// Collectives whose parts have different lengths: of rows, along the first dimension.
#include <numeric>

#include "calls.h"
#include "collectives.h"
#include "documentation.h"
#include "operators.h"
#include "results.h"

namespace ccom_core {
namespace {

using namespace nb::literals;
using Counts = std::vector<size_t>;

Counts counts_of(nb::handle counts, const char* argument, int size) {
  Counts result;
  for (const nb::handle count : nb::iter(counts)) {
    const Py_ssize_t number = PyNumber_AsSsize_t(count.ptr(), PyExc_OverflowError);
    if (PyErr_Occurred() != nullptr) throw nb::python_error();
    if (number < 0) throw nb::value_error((std::string(argument) + ": needs numbers of rows, 0 or more").c_str());
    result.push_back(static_cast<size_t>(number));
  }
  if (result.size() != static_cast<size_t>(size))
    throw nb::value_error((std::string(argument) + ": needs a number for each of the " + std::to_string(size) +
                           " ranks; got " + std::to_string(result.size()))
                              .c_str());
  return result;
}

void refuse_in_group(const char* argument) {
  if (is_in_group())
    throw nb::value_error((std::string(argument) + ": needed in a group, where ranks cannot ask first").c_str());
}

// Of every rank, if the caller has not said.
Counts all_counts(Communicator& self, nb::handle counts, int64_t own) {
  if (!counts.is_none()) return counts_of(counts, "counts", self.size());
  refuse_in_group("counts");
  Counts result(static_cast<size_t>(self.size()));
  self.run([&](ccomComm_t comm) { return ccomAllGather(&own, result.data(), 1, ccomInt64, comm, nullptr); });
  return result;
}

int64_t total(const Counts& counts) { return static_cast<int64_t>(std::reduce(counts.begin(), counts.end())); }

Counts in_elements(Counts counts, size_t row) {
  for (size_t& count : counts) count *= row;
  return counts;
}

int64_t rows_of(const Array& array) { return array.shape().empty() ? 1 : array.shape()[0]; }

void need_rows(const Array& array, const Counts& counts, const char* argument) {
  if (rows_of(array) != total(counts))
    throw nb::value_error(("array: needs as many rows as " + std::string(argument) + " has in all, " +
                           std::to_string(total(counts)) + "; got shape " + text_of(array.shape()))
                              .c_str());
}

void need_own(const Array& array, const Counts& counts, int rank) {
  if (static_cast<size_t>(rows_of(array)) != counts[static_cast<size_t>(rank)])
    throw nb::value_error(("array: needs the " + std::to_string(counts[static_cast<size_t>(rank)]) +
                           " rows that counts has for rank " + std::to_string(rank) + "; got shape " +
                           text_of(array.shape()))
                              .c_str());
}

nb::object all_gather_v(Communicator& self, nb::handle array, nb::handle counts, nb::handle out, bool blocking) {
  Array sent(array, "array", false);
  Counts parts = all_counts(self, counts, rows_of(sent));
  need_own(sent, parts, self.rank());
  Result result = result_for(out, with_rows(sent.shape(), total(parts)), sent.type());
  parts = in_elements(std::move(parts), elements_of_row(sent.shape()));
  return carry_out(
      self, blocking, std::move(result.object),
      [&parts, from = sent.data(), to = result.array.data(), count = sent.count(), type = sent.type()](
          ccomComm_t comm, ccomStream_t stream) {
        return ccomAllGatherV(from, count, to, parts.data(), nullptr, type, comm, stream);
      },
      sent, result.array);
}

nb::object gather_v(Communicator& self, nb::handle array, nb::handle counts, int root, nb::handle out, bool blocking) {
  const bool is_root = root == self.rank();
  Array sent(array, "array", false);
  Counts parts = all_counts(self, counts, rows_of(sent));
  need_own(sent, parts, self.rank());
  Result result{nb::none(), Array()};
  if (is_root) result = result_for(out, with_rows(sent.shape(), total(parts)), sent.type());
  parts = in_elements(std::move(parts), elements_of_row(sent.shape()));
  return carry_out(
      self, blocking, std::move(result.object),
      [&parts, root, from = sent.data(), to = result.array.data(), count = sent.count(), type = sent.type()](
          ccomComm_t comm, ccomStream_t stream) {
        return ccomGatherV(from, count, to, parts.data(), nullptr, type, root, comm, stream);
      },
      sent, result.array);
}

nb::object reduce_scatter_v(Communicator& self, nb::handle array, nb::handle counts, nb::handle op, nb::handle out,
                            bool blocking) {
  Array sent(array, "array", false);
  const ccomRedOp_t reduction = op_of(op, self);
  Counts parts = counts_of(counts, "counts", self.size());
  need_rows(sent, parts, "counts");
  const auto own = static_cast<int64_t>(parts[static_cast<size_t>(self.rank())]);
  Result result = result_for(out, with_rows(sent.shape(), own), sent.type());
  parts = in_elements(std::move(parts), elements_of_row(sent.shape()));
  return carry_out(
      self, blocking, std::move(result.object),
      [&parts, reduction, from = sent.data(), to = result.array.data(), type = sent.type()](ccomComm_t comm,
                                                                                            ccomStream_t stream) {
        return ccomReduceScatterV(from, to, parts.data(), type, reduction, comm, stream);
      },
      sent, result.array);
}

nb::object scatter_v(Communicator& self, nb::handle array, nb::handle counts, int root, nb::handle out, bool blocking) {
  const bool is_root = root == self.rank();
  if (!is_root && out.is_none()) throw nb::type_error("out: needed on every rank but root, which alone has array");
  Array sent;
  Counts parts;
  Result result{nb::none(), Array()};
  if (is_root) {
    sent = Array(array, "array", false);
    parts = counts_of(counts, "counts", self.size());
    need_rows(sent, parts, "counts");
    const auto own = static_cast<int64_t>(parts[static_cast<size_t>(root)]);
    result = result_for(out, with_rows(sent.shape(), own), sent.type());
    parts = in_elements(std::move(parts), elements_of_row(sent.shape()));
  } else {
    result = {nb::borrow(out), Array(out, "out", true)};
  }
  return carry_out(
      self, blocking, std::move(result.object),
      [&parts, root, from = sent.data(), to = result.array.data(), count = result.array.count(),
       type = result.array.type()](ccomComm_t comm, ccomStream_t stream) {
        return ccomScatterV(from, parts.data(), nullptr, to, count, type, root, comm, stream);
      },
      sent, result.array);
}

nb::object all_to_all_v(Communicator& self, nb::handle array, nb::handle send_counts, nb::handle recv_counts,
                        nb::handle out, bool blocking) {
  Array sent(array, "array", false);
  Counts sends = counts_of(send_counts, "send_counts", self.size());
  need_rows(sent, sends, "send_counts");
  Counts receives(sends.size());
  if (!recv_counts.is_none()) {
    receives = counts_of(recv_counts, "recv_counts", self.size());
  } else {
    refuse_in_group("recv_counts");
    self.run([&](ccomComm_t comm) { return ccomAlltoAll(sends.data(), receives.data(), 1, ccomInt64, comm, nullptr); });
  }
  Result result = result_for(out, with_rows(sent.shape(), total(receives)), sent.type());
  sends = in_elements(std::move(sends), elements_of_row(sent.shape()));
  receives = in_elements(std::move(receives), elements_of_row(sent.shape()));
  return carry_out(
      self, blocking, std::move(result.object),
      [&sends, &receives, from = sent.data(), to = result.array.data(), type = sent.type()](ccomComm_t comm,
                                                                                            ccomStream_t stream) {
        return ccomAlltoAllV(from, sends.data(), nullptr, to, receives.data(), nullptr, type, comm, stream);
      },
      sent, result.array);
}

}  // namespace

void add_collectives_of_parts(nb::class_<Communicator>& type) {
  type.def("all_gather_v", &all_gather_v, "array"_a, "counts"_a = nb::none(), nb::kw_only(), "out"_a = nb::none(),
           "blocking"_a = true, documentation::kAllGatherV);
  type.def("gather_v", &gather_v, "array"_a, "counts"_a = nb::none(), "root"_a = 0, nb::kw_only(), "out"_a = nb::none(),
           "blocking"_a = true, documentation::kGatherV);
  type.def("reduce_scatter_v", &reduce_scatter_v, "array"_a, "counts"_a, "op"_a = "sum", nb::kw_only(),
           "out"_a = nb::none(), "blocking"_a = true, documentation::kReduceScatterV);
  type.def("scatter_v", &scatter_v, "array"_a.none(), "counts"_a = nb::none(), "root"_a = 0, nb::kw_only(),
           "out"_a = nb::none(), "blocking"_a = true, documentation::kScatterV);
  type.def("all_to_all_v", &all_to_all_v, "array"_a, "send_counts"_a, "recv_counts"_a = nb::none(), nb::kw_only(),
           "out"_a = nb::none(), "blocking"_a = true, documentation::kAllToAllV);
}

}  // namespace ccom_core
