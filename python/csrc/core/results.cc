// SPDX-License-Identifier: Apache-2.0
#include "results.h"

namespace ccom_core {

Result result_for(nb::handle out, Shape shape, ccomDataType_t type) {
  if (out.is_none()) {
    nb::object made = new_array(shape, type);
    Array array(made, "out", true);
    return {std::move(made), std::move(array)};
  }
  Array array(out, "out", true);
  size_t count = 1;
  for (const int64_t size : shape) count *= static_cast<size_t>(size);
  if (array.type() != type)
    throw nb::type_error(
        ("out: needs elements of " + std::string(name_of(type)) + ", as those sent; got " + name_of(array.type()))
            .c_str());
  if (array.count() != count)
    throw nb::value_error(("out: needs shape " + text_of(shape) + ", or another of " + std::to_string(count) +
                           " elements; got " + text_of(array.shape()))
                              .c_str());
  return {nb::borrow(out), std::move(array)};
}

Sizes with_rows(Shape shape, int64_t rows) {
  Sizes result(shape.begin(), shape.end());
  if (result.empty()) result.push_back(1);
  result[0] = rows;
  return result;
}

int64_t rows_of_part(const Array& array, const char* argument, int parts) {
  if (array.shape().empty() || array.shape()[0] % parts != 0)
    throw nb::value_error((std::string(argument) + ": needs a first dimension that the " + std::to_string(parts) +
                           " ranks divide; got shape " + text_of(array.shape()))
                              .c_str());
  return array.shape()[0] / parts;
}

size_t elements_of_row(Shape shape) {
  size_t elements = 1;
  for (size_t i = 1; i < shape.size(); ++i) elements *= static_cast<size_t>(shape[i]);
  return elements;
}

}  // namespace ccom_core
