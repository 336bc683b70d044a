// SPDX-License-Identifier: Apache-2.0
//
// MPI's rule of progress: while a rank waits in a call, messages that it has begun move on. A rank that waits in ccom
// therefore lets the MPI below make progress, every microsecond or so: it tests a receive of its own that never comes
// (on a communicator of its own, because a probe that finds a message returns without progress).
#pragma once

#include "ccom/ccom.h"
#include "doors/mpi/mpi_below.h"

namespace ccom::mpi {

// While this lives, the thread is in a call of MPI's, so that it may call MPI where ccom waits. ccom's own threads are
// in none.
class InCall {
 public:
  InCall();
  ~InCall();
  InCall(const InCall&) = delete;
  InCall& operator=(const InCall&) = delete;
};

// Posts the receive on a communicator of this rank alone; after MPI_Init.
void begin_progress(Handle alone);
// Takes it back; before MPI_Finalize does anything.
void end_progress();
// Once, if this thread is in a call of MPI's.
void make_progress();
// Makes waits of communicators with this configuration keep the MPI below going.
void add_progress(ccomConfig_t& config);

}  // namespace ccom::mpi
