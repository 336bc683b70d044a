// SPDX-License-Identifier: Apache-2.0
//
// What MPI's functions on requests do about those of ccom's before and behind the MPI's own function.
#pragma once

#include <thread>
#include <utility>
#include <vector>

#include "doors/mpi/progress.h"
#include "doors/mpi/requests.h"

namespace ccom::mpi {

// The requests of one call that are ccom's, while any is under way or has failed.
class Ours {
 public:
  // `handle_at`: the handle at a place of the program's array.
  template <typename HandleAt>
  Ours(int count, const HandleAt& handle_at) {
    if (Requests::get().are_quiet()) return;
    for (int i = 0; i < count; ++i)
      if (Request* const request = Requests::get().find(handle_at(i))) all_.emplace_back(i, request);
  }
  bool empty() const { return all_.empty(); }
  // Gives the processor away where one is under way: ccom's thread may need it, and programs ask again at once.
  void advance() const {
    bool are_over = true;
    for (const auto& [place, request] : all_) are_over &= request->advance();
    if (!are_over) std::this_thread::yield();
  }
  void complete() const {
    for (const auto& [place, request] : all_) request->complete();
  }
  // Until `is_over`, which asks MPI, says so. Makes no call in this thread: what it waited there for might be another
  // one of these calls, or come only after the program has been told of that.
  template <typename IsOver>
  void wait_until(const IsOver& is_over) const {
    do advance();
    while (!is_over());
  }
  // Of what is over at that place: MPI's code if it is a call of ccom's that has failed.
  int report(int place) const {
    for (const auto& [at, request] : all_)
      if (at == place) return request->report();
    return kSuccess;
  }

 private:
  const InCall in_call_;
  std::vector<std::pair<int, Request*>> all_;
};

// How many places `indices` names: none where MPI says that no request was active.
inline int named(int outcount) { return outcount == mpi().numbers.undefined ? 0 : outcount; }

}  // namespace ccom::mpi
