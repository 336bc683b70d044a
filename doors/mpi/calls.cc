// SPDX-License-Identifier: Apache-2.0
//
// MPI's functions of equal parts, in place of the MPI below. Names and arguments are MPI's.
#include <cstring>

#include "doors/mpi/arguments.h"
#include "doors/mpi/call.h"
#include "doors/mpi/elements.h"
#include "doors/mpi/exported.h"
#include "doors/mpi/large_counts.h"

namespace ccom::mpi {
namespace {

template <typename Below, typename Count>
int allreduce(Below below, const void* send, void* recv, Count count, Handle type, Handle op, Handle comm) {
  Call call(Kind::Allreduce, comm);
  if (!call.is_possible()) return below(send, recv, count, type, op, comm);
  const Reduced reduced(type, op);
  call.demand(count >= 0 && reduced.has_buffers(send, recv, count));
  if (!call.is_taken(reduced.bytes_of(count), Kind::Allreduce, reduced.type, reduced.op))
    return below(send, recv, count, type, op, comm);
  return call.end(ccom_library().AllReduce(is_in_place(send) ? recv : send, recv, static_cast<size_t>(count),
                                           reduced.type->type, reduced.op->op, call.comm(), nullptr));
}

template <typename Below, typename Count>
int reduce(Below below, const void* send, void* recv, Count count, Handle type, Handle op, int root, Handle comm) {
  Call call(Kind::Reduce, comm);
  if (!call.is_possible()) return below(send, recv, count, type, op, root, comm);
  const Reduced reduced(type, op);
  const bool is_root = call.rank() == root;
  call.demand(count >= 0 && call.has_rank(root) &&
              (is_root ? reduced.has_buffers(send, recv, count) : is_buffer(send, reduced.bytes_of(count))));
  if (!call.is_taken(reduced.bytes_of(count), Kind::Reduce, reduced.type, reduced.op))
    return below(send, recv, count, type, op, root, comm);
  return call.end(ccom_library().Reduce(is_in_place(send) ? recv : send, is_root ? recv : nullptr,
                                        static_cast<size_t>(count), reduced.type->type, reduced.op->op, root,
                                        call.comm(), nullptr));
}

template <typename Below, typename Count>
int reduce_scatter_block(Below below, const void* send, void* recv, Count count, Handle type, Handle op, Handle comm) {
  Call call(Kind::ReduceScatterBlock, comm);
  if (!call.is_possible()) return below(send, recv, count, type, op, comm);
  const Reduced reduced(type, op);
  const uint64_t bytes = reduced.bytes_of(count);
  call.demand(count >= 0 && reduced.has_buffers(send, recv, count));
  if (!call.is_taken(bytes * call.size(), Kind::ReduceScatterBlock, reduced.type, reduced.op))
    return below(send, recv, count, type, op, comm);
  Room room;
  void* const own = room.result(send, recv, bytes);
  const ccomResult_t result =
      ccom_library().ReduceScatter(is_in_place(send) ? recv : send, own, static_cast<size_t>(count), reduced.type->type,
                                   reduced.op->op, call.comm(), nullptr);
  if (own != recv && result == ccomSuccess) std::memcpy(recv, own, bytes);
  return call.end(result);
}

template <typename Below, typename Count>
int bcast(Below below, void* buffer, Count count, Handle type, int root, Handle comm) {
  Call call(Kind::Bcast, comm);
  if (!call.is_possible()) return below(buffer, count, type, root, comm);
  const Elements elements(type);
  const uint64_t bytes = elements.bytes_of(count);
  call.demand(count >= 0 && elements.is_valid && call.has_rank(root) && is_buffer(buffer, elements, count));
  if (!call.is_taken(bytes)) return below(buffer, count, type, root, comm);
  Room room;
  std::byte* const data = room.place(elements, buffer, count);
  if (!elements.is_plain && call.rank() == root) elements.pack(buffer, count, data, call.handle());
  const ccomResult_t result = ccom_library().Broadcast(data, data, bytes, kBytes, root, call.comm(), nullptr);
  if (!elements.is_plain && call.rank() != root && result == ccomSuccess)
    elements.unpack(data, buffer, count, call.handle());
  return call.end(result);
}

template <typename Below, typename Count>
int allgather(Below below, const void* send, Count sendcount, Handle sendtype, void* recv, Count recvcount,
              Handle recvtype, Handle comm) {
  Call call(Kind::Allgather, comm);
  if (!call.is_possible()) return below(send, sendcount, sendtype, recv, recvcount, recvtype, comm);
  const Elements theirs(recvtype);
  const Elements mine(is_in_place(send) ? recvtype : sendtype);
  const uint64_t bytes = theirs.bytes_of(recvcount);
  call.demand(recvcount >= 0 && theirs.is_valid && mine.is_valid && is_buffer(recv, theirs, recvcount) &&
              (is_in_place(send) || (sendcount >= 0 && is_buffer(send, mine, sendcount))));
  if (!call.is_taken(bytes)) return below(send, sendcount, sendtype, recv, recvcount, recvtype, comm);
  if (!is_in_place(send) && mine.bytes_of(sendcount) != bytes) return call.forbid(kUnequal);
  Room given_room, got_room;
  const int64_t all = int64_t(recvcount) * call.size();
  std::byte* const got = got_room.place(theirs, recv, all);
  std::byte* const own = got + bytes * call.rank();
  const std::byte* from = own;
  if (!is_in_place(send))
    from = given_room.packed(mine, send, sendcount, call.handle());
  else if (!theirs.is_plain)
    theirs.pack(theirs.at(recv, int64_t(recvcount) * call.rank()), recvcount, own, call.handle());
  const ccomResult_t result = ccom_library().AllGather(from, got, bytes, kBytes, call.comm(), nullptr);
  if (!theirs.is_plain && result == ccomSuccess) theirs.unpack(got, recv, all, call.handle());
  return call.end(result);
}

template <typename Below, typename Count>
int alltoall(Below below, const void* send, Count sendcount, Handle sendtype, void* recv, Count recvcount,
             Handle recvtype, Handle comm) {
  Call call(Kind::Alltoall, comm);
  if (!call.is_possible()) return below(send, sendcount, sendtype, recv, recvcount, recvtype, comm);
  const Elements theirs(recvtype);
  const Elements mine(is_in_place(send) ? recvtype : sendtype);
  const uint64_t bytes = theirs.bytes_of(recvcount);
  call.demand(recvcount >= 0 && theirs.is_valid && mine.is_valid && is_buffer(recv, theirs, recvcount) &&
              (is_in_place(send) || (sendcount >= 0 && is_buffer(send, mine, sendcount))));
  if (!call.is_taken(bytes)) return below(send, sendcount, sendtype, recv, recvcount, recvtype, comm);
  if (!is_in_place(send) && mine.bytes_of(sendcount) != bytes) return call.forbid(kUnequal);
  Room given_room, got_room;
  const int64_t all = int64_t(recvcount) * call.size();
  std::byte* const got = got_room.place(theirs, recv, all);
  const std::byte* from = got;
  if (!is_in_place(send))
    from = given_room.packed(mine, send, int64_t(sendcount) * call.size(), call.handle());
  else if (!theirs.is_plain)
    theirs.pack(recv, all, got, call.handle());
  const ccomResult_t result = ccom_library().AlltoAll(from, got, bytes, kBytes, call.comm(), nullptr);
  if (!theirs.is_plain && result == ccomSuccess) theirs.unpack(got, recv, all, call.handle());
  return call.end(result);
}

template <typename Below, typename Count>
int gather(Below below, const void* send, Count sendcount, Handle sendtype, void* recv, Count recvcount,
           Handle recvtype, int root, Handle comm) {
  Call call(Kind::Gather, comm);
  if (!call.is_possible()) return below(send, sendcount, sendtype, recv, recvcount, recvtype, root, comm);
  const bool is_root = call.rank() == root;
  const bool is_here = is_root && is_in_place(send);
  const Elements mine(is_here ? recvtype : sendtype);
  const Elements theirs(is_root ? recvtype : sendtype);
  const Count count = is_here ? recvcount : sendcount;
  const uint64_t bytes = mine.bytes_of(count);
  call.demand(count >= 0 && theirs.is_valid && mine.is_valid && call.has_rank(root) &&
              (is_here || is_buffer(send, mine, count)) &&
              (!is_root || (recvcount >= 0 && is_buffer(recv, theirs, recvcount))));
  if (!call.is_taken(bytes)) return below(send, sendcount, sendtype, recv, recvcount, recvtype, root, comm);
  if (is_root && theirs.bytes_of(recvcount) != bytes) return call.forbid(kUnequal);
  Room given_room, got_room;
  const int64_t all = is_root ? int64_t(recvcount) * call.size() : 0;
  std::byte* got = nullptr;
  if (is_root) got = got_room.place(theirs, recv, all);
  const std::byte* from = nullptr;
  if (!is_here) {
    from = given_room.packed(mine, send, sendcount, call.handle());
  } else {
    std::byte* const own = got + bytes * call.rank();
    if (!theirs.is_plain) theirs.pack(theirs.at(recv, int64_t(recvcount) * call.rank()), recvcount, own, call.handle());
    from = own;
  }
  const ccomResult_t result = ccom_library().Gather(from, got, bytes, kBytes, root, call.comm(), nullptr);
  if (is_root && !theirs.is_plain && result == ccomSuccess) theirs.unpack(got, recv, all, call.handle());
  return call.end(result);
}

template <typename Below, typename Count>
int scatter(Below below, const void* send, Count sendcount, Handle sendtype, void* recv, Count recvcount,
            Handle recvtype, int root, Handle comm) {
  Call call(Kind::Scatter, comm);
  if (!call.is_possible()) return below(send, sendcount, sendtype, recv, recvcount, recvtype, root, comm);
  const bool is_root = call.rank() == root;
  const bool is_here = is_root && is_in_place(recv);
  const Elements mine(is_here ? sendtype : recvtype);
  const Elements theirs(is_root ? sendtype : recvtype);
  const Count count = is_here ? sendcount : recvcount;
  const uint64_t bytes = mine.bytes_of(count);
  call.demand(count >= 0 && theirs.is_valid && mine.is_valid && call.has_rank(root) &&
              (is_here || is_buffer(recv, mine, count)) &&
              (!is_root || (sendcount >= 0 && is_buffer(send, theirs, sendcount))));
  if (!call.is_taken(bytes)) return below(send, sendcount, sendtype, recv, recvcount, recvtype, root, comm);
  if (is_root && theirs.bytes_of(sendcount) != bytes) return call.forbid(kUnequal);
  Room given_room, got_room;
  const std::byte* from = nullptr;
  if (is_root) from = given_room.packed(theirs, send, int64_t(sendcount) * call.size(), call.handle());
  std::byte* got = nullptr;
  if (is_here)
    got = const_cast<std::byte*>(from) + bytes * call.rank();  // in place: ccom does not write there
  else
    got = got_room.place(mine, recv, recvcount);
  const ccomResult_t result = ccom_library().Scatter(from, got, bytes, kBytes, root, call.comm(), nullptr);
  if (!is_here && !mine.is_plain && result == ccomSuccess) mine.unpack(got, recv, recvcount, call.handle());
  return call.end(result);
}

}  // namespace
}  // namespace ccom::mpi

using namespace ccom::mpi;  // NOLINT(google-build-using-namespace): the functions below are MPI's

int MPI_Barrier(Handle comm) {
  Call call(Kind::Barrier, comm);
  if (!call.is_possible() || !call.is_taken(0)) return mpi().Barrier(comm);
  return call.end(ccom_library().Barrier(call.comm(), nullptr));
}
int MPI_Allreduce(const void* send, void* recv, int count, Handle type, Handle op, Handle comm) {
  return allreduce(mpi().Allreduce, send, recv, count, type, op, comm);
}
int MPI_Allreduce_c(const void* send, void* recv, MpiCount count, Handle type, Handle op, Handle comm) {
  return allreduce(large_or_not(mpi().Allreduce_c, mpi().Allreduce, comm), send, recv, count, type, op, comm);
}
int MPI_Reduce(const void* send, void* recv, int count, Handle type, Handle op, int root, Handle comm) {
  return reduce(mpi().Reduce, send, recv, count, type, op, root, comm);
}
int MPI_Reduce_c(const void* send, void* recv, MpiCount count, Handle type, Handle op, int root, Handle comm) {
  return reduce(large_or_not(mpi().Reduce_c, mpi().Reduce, comm), send, recv, count, type, op, root, comm);
}
int MPI_Reduce_scatter_block(const void* send, void* recv, int count, Handle type, Handle op, Handle comm) {
  return reduce_scatter_block(mpi().Reduce_scatter_block, send, recv, count, type, op, comm);
}
int MPI_Reduce_scatter_block_c(const void* send, void* recv, MpiCount count, Handle type, Handle op, Handle comm) {
  return reduce_scatter_block(large_or_not(mpi().Reduce_scatter_block_c, mpi().Reduce_scatter_block, comm), send, recv,
                              count, type, op, comm);
}
int MPI_Bcast(void* buffer, int count, Handle type, int root, Handle comm) {
  return bcast(mpi().Bcast, buffer, count, type, root, comm);
}
int MPI_Bcast_c(void* buffer, MpiCount count, Handle type, int root, Handle comm) {
  return bcast(large_or_not(mpi().Bcast_c, mpi().Bcast, comm), buffer, count, type, root, comm);
}
int MPI_Allgather(const void* send, int sendcount, Handle sendtype, void* recv, int recvcount, Handle recvtype,
                  Handle comm) {
  return allgather(mpi().Allgather, send, sendcount, sendtype, recv, recvcount, recvtype, comm);
}
int MPI_Allgather_c(const void* send, MpiCount sendcount, Handle sendtype, void* recv, MpiCount recvcount,
                    Handle recvtype, Handle comm) {
  return allgather(large_or_not(mpi().Allgather_c, mpi().Allgather, comm), send, sendcount, sendtype, recv, recvcount,
                   recvtype, comm);
}
int MPI_Alltoall(const void* send, int sendcount, Handle sendtype, void* recv, int recvcount, Handle recvtype,
                 Handle comm) {
  return alltoall(mpi().Alltoall, send, sendcount, sendtype, recv, recvcount, recvtype, comm);
}
int MPI_Alltoall_c(const void* send, MpiCount sendcount, Handle sendtype, void* recv, MpiCount recvcount,
                   Handle recvtype, Handle comm) {
  return alltoall(large_or_not(mpi().Alltoall_c, mpi().Alltoall, comm), send, sendcount, sendtype, recv, recvcount,
                  recvtype, comm);
}
int MPI_Gather(const void* send, int sendcount, Handle sendtype, void* recv, int recvcount, Handle recvtype, int root,
               Handle comm) {
  return gather(mpi().Gather, send, sendcount, sendtype, recv, recvcount, recvtype, root, comm);
}
int MPI_Gather_c(const void* send, MpiCount sendcount, Handle sendtype, void* recv, MpiCount recvcount, Handle recvtype,
                 int root, Handle comm) {
  return gather(large_or_not(mpi().Gather_c, mpi().Gather, comm), send, sendcount, sendtype, recv, recvcount, recvtype,
                root, comm);
}
int MPI_Scatter(const void* send, int sendcount, Handle sendtype, void* recv, int recvcount, Handle recvtype, int root,
                Handle comm) {
  return scatter(mpi().Scatter, send, sendcount, sendtype, recv, recvcount, recvtype, root, comm);
}
int MPI_Scatter_c(const void* send, MpiCount sendcount, Handle sendtype, void* recv, MpiCount recvcount,
                  Handle recvtype, int root, Handle comm) {
  return scatter(large_or_not(mpi().Scatter_c, mpi().Scatter, comm), send, sendcount, sendtype, recv, recvcount,
                 recvtype, root, comm);
}
