// SPDX-License-Identifier: Apache-2.0
//
// What a persistent call runs on: a communicator of ccom's and a stream, of its own.
//
// MPI matches persistent calls when they are made, in the same order on all ranks; they may be started in any order,
// another one on each rank, and may lie open beside blocking calls of the same communicator. ccom matches the calls of
// a communicator in the order in which they come, and runs those of a stream one after the other. So each persistent
// call has both for itself, where no other call is before it.
#pragma once

#include <memory>

#include "doors/mpi/communicators.h"

namespace ccom::mpi {

struct Channel {
  Channel() = default;
  ~Channel();
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  ccomComm_t comm = nullptr;
  ccomStream_t stream = nullptr;
  Communicator* of = nullptr;  // null: that has been freed
  int error_code = 0;          // of MPI, made for its error
};

// Collective: one that no call uses on any rank, or another one. Null, on all ranks, if there are too many already, one
// cannot be made, or a rank is not ready, and why. Calls that have ended leave theirs to later ones.
std::shared_ptr<Channel> open_channel(Communicator& of, bool is_ready, Fate& why_not);

}  // namespace ccom::mpi
