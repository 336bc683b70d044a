// SPDX-License-Identifier: Apache-2.0
#include "array.h"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

namespace ccom_core {
namespace {

constexpr const char* kWanted =
    "needs an array of numpy's, or an object with DLPack or the buffer protocol (a tensor, bytearray, memoryview)";

[[noreturn]] void refuse_type(const char* argument, const std::string& text) {
  throw nb::type_error((std::string(argument) + ": " + text).c_str());
}
[[noreturn]] void refuse_value(const char* argument, const std::string& text) {
  throw nb::value_error((std::string(argument) + ": " + text).c_str());
}

std::string name_of_type(nb::handle object) { return nb::cast<std::string>(nb::inst_name(object)); }

// struct's format characters; native sizes differ from standard ones in l and L alone.
std::optional<ccomDataType_t> integer_of(bool is_signed, Py_ssize_t bytes) {
  switch (bytes) {
    case 1: return is_signed ? ccomInt8 : ccomUint8;
    case 2: return is_signed ? ccomInt16 : ccomUint16;
    case 4: return is_signed ? ccomInt32 : ccomUint32;
    case 8: return is_signed ? ccomInt64 : ccomUint64;
    default: return std::nullopt;
  }
}

std::optional<ccomDataType_t> type_of_format(const char* format, Py_ssize_t bytes) {
  if (format == nullptr) return ccomUint8;
  if (*format == '@' || *format == '=' || *format == '<') ++format;
  if (std::strcmp(format, "Zf") == 0) return ccomComplex64;
  if (std::strcmp(format, "Zd") == 0) return ccomComplex128;
  if (format[0] == '\0' || format[1] != '\0') return std::nullopt;
  switch (*format) {
    case 'f': return ccomFloat32;
    case 'd': return ccomFloat64;
    case 'e': return ccomFloat16;
    case '?': return ccomBool;
    case 'b':
    case 'h':
    case 'i':
    case 'l':
    case 'q':
    case 'n': return integer_of(true, bytes);
    case 'c':
    case 'B':
    case 'H':
    case 'I':
    case 'L':
    case 'Q':
    case 'N': return integer_of(false, bytes);
    default: return std::nullopt;
  }
}

// DLPack's codes: those that have come since its version 1.0 too.
std::optional<ccomDataType_t> type_of_dlpack(nb::dlpack::dtype type) {
  if (type.lanes != 1) return std::nullopt;
  switch (type.code) {
    case 0: return integer_of(true, type.bits / 8);
    case 1: return integer_of(false, type.bits / 8);
    case 2:
      return type.bits == 16   ? std::optional(ccomFloat16)
             : type.bits == 32 ? std::optional(ccomFloat32)
             : type.bits == 64 ? std::optional(ccomFloat64)
                               : std::nullopt;
    case 4: return type.bits == 16 ? std::optional(ccomBfloat16) : std::nullopt;
    case 5:
      return type.bits == 64    ? std::optional(ccomComplex64)
             : type.bits == 128 ? std::optional(ccomComplex128)
                                : std::nullopt;
    case 6: return type.bits == 8 ? std::optional(ccomBool) : std::nullopt;
    case 10: return ccomFloat8e4m3;
    case 12: return ccomFloat8e5m2;
    default: return std::nullopt;
  }
}

constexpr const char* kNotContiguous = "is not contiguous (C order); numpy.ascontiguousarray makes a copy that is";
constexpr const char* kReadOnly = "is read-only, but the result is written to it";

}  // namespace

// A constructor that throws has no destructor.
Array::Array(nb::handle object, const char* argument, bool is_written) try {
  if (PyObject_CheckBuffer(object.ptr()) != 0) {
    read_buffer(object, argument, is_written);
  } else if (nb::hasattr(object, "__dlpack__")) {
    read_dlpack(object, argument, is_written);
  } else {
    refuse_type(argument, std::string(kWanted) + ", got " + name_of_type(object));
  }
} catch (...) {
  if (has_view_) PyBuffer_Release(&view_);
}

Array::~Array() {
  if (has_view_) PyBuffer_Release(&view_);
}

void Array::take(Array& other) noexcept {
  data_ = other.data_;
  count_ = other.count_;
  type_ = other.type_;
  dimensions_ = other.dimensions_;
  has_view_ = std::exchange(other.has_view_, false);
  if (has_view_) view_ = other.view_;
  tensor_ = std::move(other.tensor_);
  other.tensor_.reset();
  std::copy_n(other.shape_.data(), dimensions_, shape_.data());
}

Array& Array::operator=(Array&& other) noexcept {
  if (has_view_) PyBuffer_Release(&view_);
  take(other);
  return *this;
}

void Array::read_buffer(nb::handle object, const char* argument, bool is_written) {
  if (PyObject_GetBuffer(object.ptr(), &view_, PyBUF_FORMAT | PyBUF_STRIDES) != 0) {
    PyErr_Clear();
    read_view(object, argument, is_written);
    return;
  }
  has_view_ = true;
  if (is_written && view_.readonly != 0) refuse_value(argument, kReadOnly);
  if (PyBuffer_IsContiguous(&view_, 'C') == 0) refuse_value(argument, kNotContiguous);
  const std::optional<ccomDataType_t> type = type_of_format(view_.format, view_.itemsize);
  if (!type || bytes_of(*type) != static_cast<size_t>(view_.itemsize)) {
    const bool is_swapped = view_.format[0] == '>' || view_.format[0] == '!';
    refuse_type(argument, is_swapped ? "elements are big-endian; array.astype(array.dtype.newbyteorder('=')) swaps them"
                                     : "elements of format '" + std::string(view_.format) + "' are not supported");
  }
  data_ = view_.buf;
  type_ = *type;
  dimensions_ = std::min(view_.ndim, kMostDimensions);
  count_ = static_cast<size_t>(view_.len / view_.itemsize);
  std::copy_n(view_.shape, dimensions_, shape_.data());
}

void Array::read_view(nb::handle object, const char* argument, bool is_written) {
  if (!nb::hasattr(object, "dtype") || !nb::hasattr(object, "view"))
    refuse_type(argument, std::string(kWanted) + ", got " + name_of_type(object) + ", whose buffer cannot be read");
  const ccomDataType_t type = type_of(object.attr("dtype"), argument);
  if (!nb::cast<bool>(object.attr("flags").attr("c_contiguous"))) refuse_value(argument, kNotContiguous);
  read_buffer(object.attr("view")(bytes_of(type) == 1 ? "uint8" : "uint16"), argument, is_written);
  type_ = type;
}

void Array::read_dlpack(nb::handle object, const char* argument, bool is_written) {
  if (nb::hasattr(object, "__dlpack_device__")) {
    const int kind = nb::cast<int>(nb::object(object.attr("__dlpack_device__")())[0]);
    if (kind != 1 && kind != 3 && kind != 13)  // processors', and what they reach: pinned and managed memory
      refuse_value(argument, "is in the memory of a device (DLPack's number " + std::to_string(kind) +
                                 "); ccom communicates host memory: copy it to the CPU first");
  }
  const bool is_immutable = nb::cast<std::string>(nb::str(object.type().attr("__module__"))).starts_with("jax");
  nb::ndarray<> written;
  if (!is_immutable && nb::try_cast(object, written)) {
    tensor_.emplace(written);
  } else {
    nb::ndarray<nb::ro> readable;
    const bool is_readable = nb::try_cast(object, readable);
    if (is_written && is_readable) refuse_value(argument, kReadOnly);
    if (!is_readable) refuse_type(argument, name_of_type(object) + " does not give its memory by DLPack");
    tensor_.emplace(readable);
  }
  const nb::ndarray<nb::ro>& tensor = *tensor_;
  const std::optional<ccomDataType_t> type = type_of_dlpack(tensor.dtype());
  if (!type)
    refuse_type(argument, "elements of DLPack's type " + std::to_string(tensor.dtype().code) + " with " +
                              std::to_string(tensor.dtype().bits) + " bits are not supported");
  data_ = const_cast<void*>(static_cast<const void*>(tensor.data()));
  type_ = *type;
  count_ = tensor.size();
  dimensions_ = static_cast<int>(std::min<size_t>(tensor.ndim(), kMostDimensions));
  int64_t next = 1;
  for (size_t i = tensor.ndim(); i-- > 0;) {
    if (i < kMostDimensions) shape_[i] = static_cast<int64_t>(tensor.shape(i));
    if (tensor.shape(i) != 1 && count_ != 0 && tensor.stride(i) != next) refuse_value(argument, kNotContiguous);
    next *= static_cast<int64_t>(tensor.shape(i));
  }
}

}  // namespace ccom_core
