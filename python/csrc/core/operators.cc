// SPDX-License-Identifier: Apache-2.0
#include "operators.h"

#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>

#include "array.h"
#include "communicator.h"
#include "handle.h"

namespace ccom_core {
namespace {

struct Name {
  const char* name;
  ccomRedOp_t op;
};
constexpr Name kNames[] = {
    {"sum", ccomSum},        {"prod", ccomProd},        {"max", ccomMax},          {"min", ccomMin},
    {"avg", ccomAvg},        {"band", ccomBand},        {"bor", ccomBor},          {"bxor", ccomBxor},
    {"land", ccomLand},      {"lor", ccomLor},          {"mean", ccomAvg},         {"add", ccomSum},
    {"multiply", ccomProd},  {"maximum", ccomMax},      {"minimum", ccomMin},      {"bitwise_and", ccomBand},
    {"bitwise_or", ccomBor}, {"bitwise_xor", ccomBxor}, {"logical_and", ccomLand}, {"logical_or", ccomLor},
};

ccomRedOp_t op_named(const char* name) {
  for (const Name& entry : kNames) {
    if (std::strcmp(name, entry.name) == 0) return entry.op;
  }
  const std::string text = "op: there is no operator '" + std::string(name) +
                           "'; needs one of sum, prod, max, min, avg, band, bor, bxor, land, lor, or what "
                           "Communicator.create_op has made";
  throw nb::value_error(text.c_str());
}

// `count` elements at `data` as an array of numpy's that does not own them.
nb::object borrowed(const void* data, size_t count, ccomDataType_t type, bool is_written) {
  const auto bytes = static_cast<Py_ssize_t>(count * bytes_of(type));
  char* const begin = const_cast<char*>(static_cast<const char*>(data));
  const nb::object memory = nb::steal(PyMemoryView_FromMemory(begin, bytes, is_written ? PyBUF_WRITE : PyBUF_READ));
  const int64_t none[] = {0};
  return nb::module_::import_("numpy").attr("frombuffer")(memory, new_array(none, type).attr("dtype"));
}

ccomResult_t apply(const void* in, void* inout, size_t count, ccomDataType_t type, void* context) {
  const ccom_python::WithGil gil;
  const WithinCallback within;
  const auto& operation = *static_cast<const OperatorFunction*>(context);
  try {
    const nb::object left = borrowed(in, count, type, false);
    const nb::object right = borrowed(inout, count, type, true);
    if (operation.is_ufunc) {
      operation.function(left, right, nb::arg("out") = right);
    } else {
      right[nb::ellipsis()] = operation.function(left, right);
    }
  } catch (const std::exception& thrown) {  // Python's exceptions have to go while the GIL is here
    std::string text = thrown.what();
    while (!text.empty() && text.back() == '\n') text.pop_back();
    throw std::runtime_error(text.substr(text.rfind('\n') + 1));
  }
  return ccomSuccess;
}

}  // namespace

ccomRedOp_t op_of(nb::handle op, const Communicator& communicator) {
  if (PyUnicode_Check(op.ptr())) {
    Py_ssize_t length = 0;
    const char* const name = PyUnicode_AsUTF8AndSize(op.ptr(), &length);
    if (name == nullptr) throw nb::python_error();
    return length == 3 && std::memcmp(name, "sum", 3) == 0 ? static_cast<ccomRedOp_t>(ccomSum) : op_named(name);
  }
  if (nb::isinstance<Operator>(op)) return nb::cast<const Operator&>(op).op_of(communicator);
  if (nb::hasattr(op, "nin") && nb::hasattr(op, "__name__"))  // a ufunc
    return op_named(nb::cast<std::string>(nb::str(op.attr("__name__"))).c_str());
  const std::string text = "op: needs a name such as 'sum', or an operator; got " +
                           nb::cast<std::string>(nb::inst_name(op)) +
                           (PyCallable_Check(op.ptr()) != 0 ? ": Communicator.create_op makes one of a function" : "");
  throw nb::type_error(text.c_str());
}

ccomRedOp_t Operator::op_of(const Communicator& communicator) const {
  if (is_destroyed_) throw nb::value_error("op: has been destroyed");
  if (&nb::cast<const Communicator&>(communicator_) != &communicator)
    throw nb::value_error("op: was created for another communicator");
  return op_;
}

void Operator::destroy() {
  auto& communicator = nb::cast<Communicator&>(communicator_);
  if (std::exchange(is_destroyed_, true) || communicator.is_closed()) return;
  check(ccomRedOpDestroy(op_, communicator.comm()));
}

Operator create_op(Communicator& communicator, nb::object function, bool commutative) {
  if (PyCallable_Check(function.ptr()) == 0)
    throw nb::type_error("function: needs a function f(a, b) of two arrays, or a ufunc of numpy's");
  const ccomComm_t comm = communicator.comm();
  const bool is_ufunc = nb::cast<std::string>(nb::inst_name(function)).ends_with("ufunc");
  OperatorFunction& kept = communicator.operators().emplace_back(OperatorFunction{function, is_ufunc});
  ccomRedOp_t op = 0;
  check(ccomRedOpCreate(&op, &apply, &kept, commutative ? ccomRedOpCommutative : ccomRedOpOrdered, comm));
  return {nb::find(communicator), op};
}

Operator premultiplied_sum(Communicator& communicator, nb::object scalar, nb::handle dtype) {
  const ccomDataType_t type = type_of(dtype, "dtype");
  const nb::object one = new_array({}, type);
  one[nb::ellipsis()] = scalar;
  const Array factor(one, "scalar", false);
  ccomRedOp_t op = 0;
  check(ccomRedOpCreatePreMulSum(&op, factor.data(), type, ccomScalarHostImmediate, communicator.comm()));
  return {nb::find(communicator), op};
}

}  // namespace ccom_core
