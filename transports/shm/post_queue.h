// SPDX-License-Identifier: Apache-2.0
//
// A FIFO that allocates only when it exceeds its previous maximum.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "base/assert.h"

namespace ccom::shm {

template <typename T>
class PostQueue {
 public:
  PostQueue() : items_(8) {}
  bool empty() const { return size_ == 0; }
  T& front() {
    CCOM_ASSERT(!empty());
    return items_[first_];
  }
  const T& front() const {
    CCOM_ASSERT(!empty());
    return items_[first_];
  }
  void push(const T& item) {
    if (size_ == items_.size()) grow();
    items_[(first_ + size_++) & (items_.size() - 1)] = item;
  }
  void pop() {
    CCOM_ASSERT(!empty());
    first_ = (first_ + 1) & (items_.size() - 1);
    --size_;
  }
  void clear() { first_ = size_ = 0; }

 private:
  void grow() {
    std::vector<T> larger(items_.size() * 2);
    for (size_t i = 0; i < size_; ++i) larger[i] = std::move(items_[(first_ + i) & (items_.size() - 1)]);
    items_ = std::move(larger);
    first_ = 0;
  }
  std::vector<T> items_;  // a power of two
  size_t first_ = 0;
  size_t size_ = 0;
};

}  // namespace ccom::shm
