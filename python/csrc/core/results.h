// SPDX-License-Identifier: Apache-2.0
//
// Where results are written: a new array, the caller's, or the one that is sent.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "array.h"

namespace ccom_core {

using Sizes = std::vector<int64_t>;

struct Result {
  nb::object object;
  Array array;
};

// Of `shape` and `type`. out None: a new array.
Result result_for(nb::handle out, Shape shape, ccomDataType_t type);
inline Result result_for(nb::handle out, const Sizes& shape, ccomDataType_t type) {
  return result_for(out, Shape(shape.data(), shape.size()), type);
}
// `rows` along the first dimension, of what an array of this shape has there; of a single number, as many of these.
Sizes with_rows(Shape shape, int64_t rows);
// The length of the first dimension over `parts`; a ValueError if that leaves a rest.
int64_t rows_of_part(const Array& array, const char* argument, int parts);
// Elements of what the first dimension has one of.
size_t elements_of_row(Shape shape);

}  // namespace ccom_core
