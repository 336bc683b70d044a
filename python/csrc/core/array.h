// SPDX-License-Identifier: Apache-2.0
//
// Arrays of other libraries as ccom takes them: contiguous host memory of one of its types. From the buffer protocol
// (numpy, bytearray, array, memoryview), or DLPack (torch, JAX, CuPy); numpy's arrays of the types of ml_dtypes, which
// the buffer protocol does not know, by a view.
#pragma once

#include <ccom/ccom.h>
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace ccom_core {

namespace nb = nanobind;

size_t bytes_of(ccomDataType_t type);
const char* name_of(ccomDataType_t type);
// "float32", numpy.float32, ml_dtypes.bfloat16, torch.float32 ...; else a TypeError that names `argument`.
ccomDataType_t type_of(nb::handle dtype, const char* argument);

using Shape = std::span<const int64_t>;
// "(2, 3)"
std::string text_of(Shape shape);

// Borrows an object's memory for as long as it lives. All of it with the GIL.
class Array {
 public:
  static constexpr int kMostDimensions = 64;  // numpy's

  Array() = default;
  // Raises TypeError or ValueError, with the name of the argument, what it is and what is needed.
  Array(nb::handle object, const char* argument, bool is_written);
  ~Array();
  Array(Array&& other) noexcept { take(other); }
  Array& operator=(Array&& other) noexcept;

  void* data() const { return data_; }
  size_t count() const { return count_; }
  size_t bytes() const { return count_ * bytes_of(type_); }
  ccomDataType_t type() const { return type_; }
  Shape shape() const { return {shape_.data(), static_cast<size_t>(dimensions_)}; }

 private:
  void read_buffer(nb::handle object, const char* argument, bool is_written);
  void read_view(nb::handle object, const char* argument, bool is_written);
  void read_dlpack(nb::handle object, const char* argument, bool is_written);
  void take(Array& other) noexcept;

  void* data_ = nullptr;
  size_t count_ = 0;
  ccomDataType_t type_ = ccomUint8;
  int dimensions_ = 0;
  bool has_view_ = false;
  Py_buffer view_;  // if has_view_
  std::optional<nb::ndarray<nb::ro>> tensor_;
  std::array<int64_t, kMostDimensions> shape_;  // the first dimensions_ of it
};

// A new array of numpy's; its memory is not initialised.
nb::object new_array(Shape shape, ccomDataType_t type);

}  // namespace ccom_core
