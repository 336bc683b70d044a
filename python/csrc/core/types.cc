// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string_view>

#include "array.h"

namespace ccom_core {
namespace {

struct Known {
  ccomDataType_t type;
  const char* name;
  size_t bytes;
};
constexpr Known kKnown[] = {
    {ccomInt8, "int8", 1},
    {ccomUint8, "uint8", 1},
    {ccomInt16, "int16", 2},
    {ccomUint16, "uint16", 2},
    {ccomInt32, "int32", 4},
    {ccomUint32, "uint32", 4},
    {ccomInt64, "int64", 8},
    {ccomUint64, "uint64", 8},
    {ccomFloat16, "float16", 2},
    {ccomFloat32, "float32", 4},
    {ccomFloat64, "float64", 8},
    {ccomBfloat16, "bfloat16", 2},
    {ccomFloat8e4m3, "float8_e4m3fn", 1},
    {ccomFloat8e5m2, "float8_e5m2", 1},
    {ccomBool, "bool", 1},
    {ccomComplex64, "complex64", 8},
    {ccomComplex128, "complex128", 16},
};

const Known& known(ccomDataType_t type) {
  return *std::ranges::find_if(kKnown, [type](const Known& entry) { return entry.type == type; });
}

bool is_of_ml_dtypes(ccomDataType_t type) {
  return type == ccomBfloat16 || type == ccomFloat8e4m3 || type == ccomFloat8e5m2;
}

nb::module_ numpy() {
  try {
    return nb::module_::import_("numpy");
  } catch (nb::python_error&) {
    throw nb::import_error("ccom: a new array is one of numpy's, which is not installed; install numpy, or give out");
  }
}

nb::object numpy_type(ccomDataType_t type) {
  const nb::module_ module = numpy();
  if (!is_of_ml_dtypes(type)) return module.attr("dtype")(name_of(type));
  try {
    return module.attr("dtype")(nb::module_::import_("ml_dtypes").attr(name_of(type)));
  } catch (nb::python_error&) {
    const std::string text =
        "ccom: numpy has " + std::string(name_of(type)) + " by the package ml_dtypes only; install it, or give out";
    throw nb::import_error(text.c_str());
  }
}

}  // namespace

size_t bytes_of(ccomDataType_t type) { return known(type).bytes; }
const char* name_of(ccomDataType_t type) { return known(type).name; }

std::string text_of(Shape shape) {
  std::string text = "(";
  for (size_t i = 0; i < shape.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
  return text + (shape.size() == 1 ? ",)" : ")");
}

ccomDataType_t type_of(nb::handle dtype, const char* argument) {
  std::string name;
  if (nb::isinstance<nb::str>(dtype)) {
    name = nb::cast<std::string>(dtype);
  } else if (nb::hasattr(dtype, "name") && nb::isinstance<nb::str>(dtype.attr("name"))) {
    name = nb::cast<std::string>(dtype.attr("name"));
  } else if (nb::hasattr(dtype, "__name__")) {
    name = nb::cast<std::string>(nb::str(dtype.attr("__name__")));
  } else {
    name = nb::cast<std::string>(nb::str(dtype));
  }
  if (const size_t dot = name.rfind('.'); dot != std::string::npos) name.erase(0, dot + 1);
  if (name == "float") name = "float64";
  if (name == "int") name = "int64";
  if (name == "complex") name = "complex128";
  for (const Known& entry : kKnown) {
    if (name == entry.name) return entry.type;
  }
  std::string names;
  for (const Known& entry : kKnown) names += (names.empty() ? "" : ", ") + std::string(entry.name);
  const std::string text = std::string(argument) + ": elements of type " + name + "; needs one of " + names;
  throw nb::type_error(text.c_str());
}

nb::object new_array(Shape shape, ccomDataType_t type) {
  static PyObject* empty = nullptr;
  static PyObject* types[64] = {};
  if (empty == nullptr) empty = nb::object(numpy().attr("empty")).release().ptr();
  PyObject*& numpys = types[static_cast<size_t>(type)];
  if (numpys == nullptr) numpys = numpy_type(type).release().ptr();
  nb::object sizes = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(shape.size())));
  for (size_t i = 0; i < shape.size(); ++i) {
    PyTuple_SetItem(sizes.ptr(), static_cast<Py_ssize_t>(i), PyLong_FromLongLong(shape[i]));
  }
  return nb::handle(empty)(sizes, nb::handle(numpys));
}

}  // namespace ccom_core
