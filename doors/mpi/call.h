// SPDX-License-Identifier: Apache-2.0
//
// One call of the program's: whether ccom takes it, which all ranks decide alike, and how it ends.
//
// All ranks decide alike because they know nothing else: the communicator, the kind, of reductions type and operator,
// and how many bytes a rank has, which MPI wants to be equal where ranks have equal parts, whatever types they give
// them. Of MPI_Gatherv, MPI_Scatterv and MPI_Alltoallv, where no rank knows all sizes, the kind alone decides.
#pragma once

#include <cstdint>

#include "doors/mpi/communicators.h"
#include "doors/mpi/progress.h"

namespace ccom::mpi {

class Call {
 public:
  explicit Call(Kind kind, Handle comm, Form form = Form::Blocking);

  // Whether ccom takes calls of this communicator at all: an intracommunicator of several ranks. To be asked before any
  // argument is looked at, because root and lists have another meaning elsewhere.
  bool is_possible();
  // What MPI demands of the arguments; what does not fulfil it is handed down, for MPI to say so.
  void demand(bool is_fulfilled) { is_valid_ &= is_fulfilled; }
  // Whether ccom takes it. bytes: the same on all ranks. as: the kind whose measured times decide.
  bool is_taken(uint64_t bytes) { return is_taken(bytes, kind_); }
  bool is_taken(uint64_t bytes, Kind as);
  // The same of a reduction of that many bytes.
  bool is_taken(uint64_t bytes, Kind as, const Type* type, const Operator* op);
  // A call whose sizes no rank knows.
  bool is_taken_unsized(uint64_t own_bytes);

  // What the program's call returns: MPI's success, or what the communicator's error handler leaves.
  int end(ccomResult_t result) { return result == ccomSuccess ? kSuccess : fail(result); }
  // Arguments that MPI forbids and that only this rank may have.
  int forbid(const char* text);

  ccomComm_t comm() const { return of_->comm; }
  Handle handle() const { return handle_; }
  int rank() const { return of_->rank; }
  int size() const { return of_->size; }
  Kind kind() const { return kind_; }
  uint64_t bytes() const { return bytes_; }  // of a call that is taken
  Communicator& of() const { return *of_; }
  bool has_rank(int rank) const { return rank >= 0 && rank < size(); }
  // Hands it down, and counts why.
  bool refuse(Fate why);

 private:
  bool is_open();
  Way way_of(Kind as, size_t size_class);
  int fail(ccomResult_t result);
  int raise_code(int code, const char* text);

  const Kind kind_;
  const Form form_;
  const Handle handle_;
  Communicator* of_ = nullptr;
  bool is_valid_ = true;
  uint64_t bytes_ = 0;
  InCall in_call_;
};

// Measures which is faster there, collective over the communicator, and the same answer on all ranks.
Way measure(Communicator& of, Kind kind, size_t size_class);

}  // namespace ccom::mpi
