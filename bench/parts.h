// SPDX-License-Identifier: Apache-2.0
//
// How long the parts of v-forms are: ranks * count elements in all, so that a size means as many bytes as in the plain
// form.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace ccom::bench {

// None: count elements each. Linear: proportional to rank + 1, rounded to whole elements. One: all of them belong to
// the last rank, the others have none.
enum class Skew { None, Linear, One };

std::span<const Skew> all_skews();
std::string_view name_of(Skew skew);
std::optional<Skew> skew_named(std::string_view name);

class Parts {
 public:
  Parts(Skew skew, int ranks, size_t count) : skew_(skew), ranks_(static_cast<size_t>(ranks)), count_(count) {}

  size_t total() const { return ranks_ * count_; }
  size_t length(int rank) const { return before(static_cast<size_t>(rank) + 1) - before(static_cast<size_t>(rank)); }
  // In the order of ranks, one behind the other.
  size_t begin(int rank) const { return before(static_cast<size_t>(rank)); }

  // Of an exchange of all with all, to which every rank gives, and from which it gets, total() elements: rank `from`
  // sends rank `to` the part of rank to - from, modulo ranks. So what it keeps is the shortest.
  size_t pair_length(int from, int to) const { return length(static_cast<int>(turn(from, to))); }
  // Where that begins in the sender's buffer, and in the receiver's.
  size_t sent_begin(int from, int to) const;
  size_t received_begin(int from, int to) const;

 private:
  // Elements of the first so many parts.
  size_t before(size_t parts) const;
  // Of `many` parts from `first` on, after the last one again from 0 on.
  size_t around(size_t first, size_t many) const;
  size_t turn(int from, int to) const {
    return (static_cast<size_t>(to) + ranks_ - static_cast<size_t>(from)) % ranks_;
  }

  Skew skew_;
  size_t ranks_;
  size_t count_;
};

}  // namespace ccom::bench
