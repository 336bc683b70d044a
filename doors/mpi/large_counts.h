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

// Arguments as ints. Lists of rooted calls are there on the root only.
class Narrowed {
 public:
  Narrowed(Handle comm, int root) {
    int is_inter = 0;  // its lists are of the other group's ranks
    mpi().Comm_test_inter(comm, &is_inter);
    is_inter != 0 ? mpi().Comm_remote_size(comm, &ranks_) : mpi().Comm_size(comm, &ranks_);
    mpi().Comm_rank(comm, &rank_);
    has_lists_ = root < 0 || root == rank_;
  }
  template <typename To, typename From>
  To as(From from) {
    if constexpr (std::is_same_v<To, int> && std::is_same_v<From, MpiCount>) {
      fits_ &= from >= INT_MIN && from <= INT_MAX;
      return static_cast<int>(from);
    } else if constexpr (std::is_same_v<To, const int*>) {
      if (!has_lists_) return nullptr;
      std::vector<int>& list = lists_.emplace_back();
      for (int i = 0; i < ranks_; ++i) list.push_back(as<int>(MpiCount{from[i]}));
      return list.data();
    } else {
      return from;
    }
  }
  bool fits() const { return fits_; }

 private:
  int ranks_ = 0, rank_ = 0;
  bool has_lists_ = true, fits_ = true;
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
    return narrowed.fits() ? std::apply(small, given) : mpi().numbers.err_arg;
  }
  Large large;
  int (*small)(To...);
  Handle comm;
  int root;
};

template <typename Large, typename... To>
LargeOrNot<Large, To...> large_or_not(Large large, int (*small)(To...), Handle comm, int root = -1) {
  return {large, small, comm, root};
}

}  // namespace ccom::mpi
