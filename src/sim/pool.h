// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace ccom {

// Values by a number that is used again once its value has been removed.
template <typename T>
class Pool {
 public:
  uint32_t add(T value) {
    if (free_.empty()) {
      values_.push_back(std::move(value));
      return static_cast<uint32_t>(values_.size() - 1);
    }
    const uint32_t index = free_.back();
    free_.pop_back();
    values_[index] = std::move(value);
    return index;
  }
  void remove(uint32_t index) { free_.push_back(index); }
  T& operator[](uint32_t index) { return values_[index]; }
  const T& operator[](uint32_t index) const { return values_[index]; }

 private:
  std::vector<T> values_;
  std::vector<uint32_t> free_;
};

}  // namespace ccom
