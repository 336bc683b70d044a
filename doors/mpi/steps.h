// SPDX-License-Identifier: Apache-2.0
//
// What is to be done for a call of equal parts once its arguments are known: elements to pack, a call of ccom's, and
// elements to unpack. A blocking call does that at once, a persistent one whenever it is started.
#pragma once

#include <optional>

#include "doors/mpi/arguments.h"
#include "doors/mpi/call.h"
#include "doors/mpi/elements.h"

namespace ccom::mpi {

// Elements in the program's buffer and the same as bytes in memory of this library's.
struct Move {
  Elements elements;
  void* buffer;
  int64_t count;
  std::byte* bytes;
};

struct Steps {
  Kind kind;
  std::optional<Move> pack = std::nullopt;
  const void* from = nullptr;
  void* to = nullptr;
  size_t count = 0;
  ccomDataType_t type = kBytes;
  ccomRedOp_t op = ccomSum;
  int root = -1;
  std::optional<Move> unpack = std::nullopt;

  // Reads the program's buffer, or a packed copy in `room`.
  void pack_from(Room& room, const Elements& elements, const void* buffer, int64_t elements_there) {
    std::byte* const bytes = room.place(elements, const_cast<void*>(buffer), elements_there);
    from = bytes;
    if (!elements.is_plain) pack = Move{elements, const_cast<void*>(buffer), elements_there, bytes};
  }

  void pack_for(Handle comm) const {
    if (pack) pack->elements.pack(pack->buffer, pack->count, pack->bytes, comm);
  }
  void unpack_for(Handle comm) const {
    if (unpack) unpack->elements.unpack(unpack->bytes, unpack->buffer, unpack->count, comm);
  }
  [[gnu::always_inline]] ccomResult_t call(ccomComm_t comm, ccomStream_t stream) const;
};

inline ccomResult_t Steps::call(ccomComm_t comm, ccomStream_t stream) const {
  const CcomLibrary& lib = ccom_library();
  switch (kind) {
    case Kind::Allreduce: return lib.AllReduce(from, to, count, type, op, comm, stream);
    case Kind::Reduce: return lib.Reduce(from, to, count, type, op, root, comm, stream);
    case Kind::ReduceScatterBlock: return lib.ReduceScatter(from, to, count, type, op, comm, stream);
    case Kind::Bcast: return lib.Broadcast(from, to, count, type, root, comm, stream);
    case Kind::Allgather: return lib.AllGather(from, to, count, type, comm, stream);
    case Kind::Alltoall: return lib.AlltoAll(from, to, count, type, comm, stream);
    case Kind::Gather: return lib.Gather(from, to, count, type, root, comm, stream);
    case Kind::Scatter: return lib.Scatter(from, to, count, type, root, comm, stream);
    default: return lib.Barrier(comm, stream);
  }
}

// A call that is over when the program's function returns.
class AtOnce {
 public:
  static constexpr Form kForm = Form::Blocking;
  bool is_ready(Call&) { return true; }
  Room& given() { return given_; }
  Room& got() { return got_; }
  [[gnu::always_inline]] int make(Call& call, const Steps& steps) {
    steps.pack_for(call.handle());
    const ccomResult_t result = steps.call(call.comm(), nullptr);
    if (result == ccomSuccess) steps.unpack_for(call.handle());
    return call.end(result);
  }

 private:
  Room given_, got_;
};

}  // namespace ccom::mpi
