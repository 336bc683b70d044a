// SPDX-License-Identifier: Apache-2.0
//
// Deaths and silences of which a host has heard and that are not yet the communicator's error: ranks that die at once
// are named together.
//
// Not thread-safe; pure.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/status.h"
#include "base/types.h"

namespace ccom {

class Losses {
 public:
  // `loss` has peers. Returns whether it names a rank that was not known to be lost, or says how one was lost of which
  // that was not known.
  bool add(const Status& loss, int64_t now_ns);
  bool names(Rank rank) const { return std::ranges::binary_search(ranks_, rank); }
  bool empty() const { return losses_.empty(); }
  const std::vector<Status>& all() const { return losses_; }
  int64_t first_ns() const { return first_ns_; }  // When the first one was added.
  // One error that names all; not to be called when there is none.
  Status error() const;

 private:
  std::vector<Status> losses_;
  std::vector<Rank> ranks_;  // of all, ascending
  int64_t first_ns_ = 0;
};

}  // namespace ccom
