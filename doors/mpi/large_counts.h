// SPDX-License-Identifier: Apache-2.0
//
// The forms with MPI_Count over an MPI that has none of them (Open MPI up to 5). Programs that look for them, as mpi4py
// does, find this library's, and call them; what is handed down there has ints, as far as the counts fit.
#pragma once

#include <climits>
#include <list>
#include <tuple>
#include <vector>

#include "doors/mpi/mpi_below.h"

namespace ccom::mpi {

inline constexpr int kNoRoot = INT_MIN, kOwnRanks = INT_MIN + 1;  // the latter: no root, and lists of the own group

// Arguments as ints, in their order. What MPI ignores is not looked at: lists of rooted calls on other ranks, counts
// and lists behind a buffer that is MPI_IN_PLACE; of MPI_Reduce_scatter the list is needed in place, too.
class Narrowed {
 public:
  Narrowed(Handle comm, int root) {
    skips_in_place_ = root != kOwnRanks;
    int is_inter = 0, rank = 0;  // its lists are of the other group's ranks
    mpi().Comm_test_inter(comm, &is_inter);
    is_inter != 0 && root != kOwnRanks ? mpi().Comm_remote_size(comm, &ranks_) : mpi().Comm_size(comm, &ranks_);
    mpi().Comm_rank(comm, &rank);
    has_lists_ = root == kNoRoot || root == kOwnRanks || root == (is_inter != 0 ? mpi().numbers.root : rank);
  }
  template <typename To, typename From>
  To as(From from) {
    if constexpr (std::is_same_v<To, int> && std::is_same_v<From, MpiCount>) {
      if (is_in_place_) return 0;
      fits_ &= from >= INT_MIN && from <= INT_MAX;
      return static_cast<int>(from);
    } else if constexpr (std::is_same_v<To, const int*>) {
      if (from == nullptr || is_in_place_ || !has_lists_) return nullptr;
      std::vector<int>& list = lists_.emplace_back();
      for (int i = 0; i < ranks_; ++i) list.push_back(as<int>(MpiCount{from[i]}));
      return list.data();
    } else if constexpr (std::is_pointer_v<From>) {
      is_in_place_ = skips_in_place_ && from == mpi().numbers.in_place;
      return from;
    } else {
      return from;
    }
  }
  bool fits() const { return fits_; }

 private:
  int ranks_ = 0;
  bool has_lists_ = true, skips_in_place_ = true, is_in_place_ = false, fits_ = true;
  std::list<std::vector<int>> lists_;
};

// MPI's function with large counts, or the other one.
template <typename Large, typename... To>
struct LargeOrNot {
  template <typename... From>
  int operator()(From... from) const {
    if (large != nullptr) return large(from...);
    Narrowed narrowed(comm, root);
    const std::tuple<To...> given{narrowed.as<To>(from)...};
    if (narrowed.fits()) return std::apply(small, given);
    mpi().Comm_call_errhandler(comm, mpi().numbers.err_count);
    return mpi().numbers.err_count;
  }
  Large large;
  int (*small)(To...);
  Handle comm;
  int root;
};

template <typename Large, typename... To>
LargeOrNot<Large, To...> large_or_not(Large large, int (*small)(To...), Handle comm, int root = kNoRoot) {
  return {large, small, comm, root};
}

}  // namespace ccom::mpi
