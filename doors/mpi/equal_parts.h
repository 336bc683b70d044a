// SPDX-License-Identifier: Apache-2.0
//
// MPI's calls of equal parts: what they demand of their arguments, and what ccom has to do for them. `How` makes the
// call, at once (steps.h) or later (requests.h); `below` is the MPI's own function.
#pragma once

#include "doors/mpi/arguments.h"
#include "doors/mpi/call.h"
#include "doors/mpi/elements.h"
#include "doors/mpi/steps.h"

namespace ccom::mpi {

template <typename How, typename Below>
int barrier(How&& how, Below below, Handle comm) {
  Call call(Kind::Barrier, comm, how.kForm);
  if (!call.is_possible() || !call.is_taken(0) || !how.is_ready(call)) return below(comm);
  return how.make(call, {.kind = Kind::Barrier});
}

template <typename How, typename Below, typename Count>
int allreduce(How&& how, Below below, const void* send, void* recv, Count count, Handle type, Handle op, Handle comm) {
  Call call(Kind::Allreduce, comm, how.kForm);
  if (!call.is_possible()) return below(send, recv, count, type, op, comm);
  const Reduced reduced(type, op);
  call.demand(count >= 0 && reduced.has_buffers(send, recv, count));
  if (!call.is_taken(reduced.bytes_of(count), Kind::Allreduce, reduced.type, reduced.op) || !how.is_ready(call))
    return below(send, recv, count, type, op, comm);
  return how.make(call, {.kind = Kind::Allreduce,
                         .from = is_in_place(send) ? recv : send,
                         .to = recv,
                         .count = static_cast<size_t>(count),
                         .type = reduced.type->type,
                         .op = reduced.op->op});
}

template <typename How, typename Below, typename Count>
int reduce(How&& how, Below below, const void* send, void* recv, Count count, Handle type, Handle op, int root,
           Handle comm) {
  Call call(Kind::Reduce, comm, how.kForm);
  if (!call.is_possible()) return below(send, recv, count, type, op, root, comm);
  const Reduced reduced(type, op);
  const bool is_root = call.rank() == root;
  call.demand(count >= 0 && call.has_rank(root) &&
              (is_root ? reduced.has_buffers(send, recv, count) : is_buffer(send, reduced.bytes_of(count))));
  if (!call.is_taken(reduced.bytes_of(count), Kind::Reduce, reduced.type, reduced.op) || !how.is_ready(call))
    return below(send, recv, count, type, op, root, comm);
  return how.make(call, {.kind = Kind::Reduce,
                         .from = is_in_place(send) ? recv : send,
                         .to = is_root ? recv : nullptr,
                         .count = static_cast<size_t>(count),
                         .type = reduced.type->type,
                         .op = reduced.op->op,
                         .root = root});
}

template <typename How, typename Below, typename Count>
int reduce_scatter_block(How&& how, Below below, const void* send, void* recv, Count count, Handle type, Handle op,
                         Handle comm) {
  Call call(Kind::ReduceScatterBlock, comm, how.kForm);
  if (!call.is_possible()) return below(send, recv, count, type, op, comm);
  const Reduced reduced(type, op);
  const uint64_t bytes = reduced.bytes_of(count);
  call.demand(count >= 0 && reduced.has_buffers(send, recv, count));
  if (!call.is_taken(bytes * call.size(), Kind::ReduceScatterBlock, reduced.type, reduced.op) || !how.is_ready(call))
    return below(send, recv, count, type, op, comm);
  Steps steps{.kind = Kind::ReduceScatterBlock,
              .from = is_in_place(send) ? recv : send,
              .to = recv,
              .count = static_cast<size_t>(count),
              .type = reduced.type->type,
              .op = reduced.op->op};
  if (is_in_place(send)) {  // elsewhere, because MPI leaves the rest of the buffer alone
    std::byte* const own = how.got().take(bytes);
    steps.to = own;
    steps.unpack = Move{Elements(type), recv, count, own};
  }
  return how.make(call, steps);
}

template <typename How, typename Below, typename Count>
int bcast(How&& how, Below below, void* buffer, Count count, Handle type, int root, Handle comm) {
  Call call(Kind::Bcast, comm, how.kForm);
  if (!call.is_possible()) return below(buffer, count, type, root, comm);
  const Elements elements(type);
  const uint64_t bytes = elements.bytes_of(count);
  call.demand(count >= 0 && elements.is_valid && call.has_rank(root) && is_buffer(buffer, elements, count));
  if (!call.is_taken(bytes) || !how.is_ready(call)) return below(buffer, count, type, root, comm);
  std::byte* const data = how.got().place(elements, buffer, count);
  Steps steps{.kind = Kind::Bcast, .from = data, .to = data, .count = bytes, .root = root};
  if (!elements.is_plain)
    (call.rank() == root ? steps.pack : steps.unpack) = Move{elements, buffer, int64_t{count}, data};
  return how.make(call, steps);
}

template <typename How, typename Below, typename Count>
int allgather(How&& how, Below below, const void* send, Count sendcount, Handle sendtype, void* recv, Count recvcount,
              Handle recvtype, Handle comm) {
  Call call(Kind::Allgather, comm, how.kForm);
  if (!call.is_possible()) return below(send, sendcount, sendtype, recv, recvcount, recvtype, comm);
  const Elements theirs(recvtype);
  const Elements mine(is_in_place(send) ? recvtype : sendtype);
  const uint64_t bytes = theirs.bytes_of(recvcount);
  call.demand(recvcount >= 0 && theirs.is_valid && mine.is_valid && is_buffer(recv, theirs, recvcount) &&
              (is_in_place(send) || (sendcount >= 0 && is_buffer(send, mine, sendcount))));
  if (!call.is_taken(bytes) || !how.is_ready(call))
    return below(send, sendcount, sendtype, recv, recvcount, recvtype, comm);
  if (!is_in_place(send) && mine.bytes_of(sendcount) != bytes) return call.forbid(kUnequal);
  const int64_t all = int64_t(recvcount) * call.size();
  std::byte* const got = how.got().place(theirs, recv, all);
  std::byte* const own = got + bytes * call.rank();
  Steps steps{.kind = Kind::Allgather, .from = own, .to = got, .count = bytes};
  if (!is_in_place(send))
    steps.pack_from(how.given(), mine, send, sendcount);
  else if (!theirs.is_plain)
    steps.pack = Move{theirs, theirs.at(recv, int64_t(recvcount) * call.rank()), recvcount, own};
  if (!theirs.is_plain) steps.unpack = Move{theirs, recv, all, got};
  return how.make(call, steps);
}

template <typename How, typename Below, typename Count>
int alltoall(How&& how, Below below, const void* send, Count sendcount, Handle sendtype, void* recv, Count recvcount,
             Handle recvtype, Handle comm) {
  Call call(Kind::Alltoall, comm, how.kForm);
  if (!call.is_possible()) return below(send, sendcount, sendtype, recv, recvcount, recvtype, comm);
  const Elements theirs(recvtype);
  const Elements mine(is_in_place(send) ? recvtype : sendtype);
  const uint64_t bytes = theirs.bytes_of(recvcount);
  call.demand(recvcount >= 0 && theirs.is_valid && mine.is_valid && is_buffer(recv, theirs, recvcount) &&
              (is_in_place(send) || (sendcount >= 0 && is_buffer(send, mine, sendcount))));
  if (!call.is_taken(bytes) || !how.is_ready(call))
    return below(send, sendcount, sendtype, recv, recvcount, recvtype, comm);
  if (!is_in_place(send) && mine.bytes_of(sendcount) != bytes) return call.forbid(kUnequal);
  const int64_t all = int64_t(recvcount) * call.size();
  std::byte* const got = how.got().place(theirs, recv, all);
  Steps steps{.kind = Kind::Alltoall, .from = got, .to = got, .count = bytes};
  if (!is_in_place(send))
    steps.pack_from(how.given(), mine, send, int64_t(sendcount) * call.size());
  else if (!theirs.is_plain)
    steps.pack = Move{theirs, recv, all, got};
  if (!theirs.is_plain) steps.unpack = Move{theirs, recv, all, got};
  return how.make(call, steps);
}

template <typename How, typename Below, typename Count>
int gather(How&& how, Below below, const void* send, Count sendcount, Handle sendtype, void* recv, Count recvcount,
           Handle recvtype, int root, Handle comm) {
  Call call(Kind::Gather, comm, how.kForm);
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
  if (!call.is_taken(bytes) || !how.is_ready(call))
    return below(send, sendcount, sendtype, recv, recvcount, recvtype, root, comm);
  if (is_root && theirs.bytes_of(recvcount) != bytes) return call.forbid(kUnequal);
  const int64_t all = is_root ? int64_t(recvcount) * call.size() : 0;
  std::byte* const got = is_root ? how.got().place(theirs, recv, all) : nullptr;
  Steps steps{.kind = Kind::Gather, .to = got, .count = bytes, .root = root};
  if (!is_here) {
    steps.pack_from(how.given(), mine, send, sendcount);
  } else {
    std::byte* const own = got + bytes * call.rank();
    if (!theirs.is_plain) steps.pack = Move{theirs, theirs.at(recv, int64_t(recvcount) * call.rank()), recvcount, own};
    steps.from = own;
  }
  if (is_root && !theirs.is_plain) steps.unpack = Move{theirs, recv, all, got};
  return how.make(call, steps);
}

template <typename How, typename Below, typename Count>
int scatter(How&& how, Below below, const void* send, Count sendcount, Handle sendtype, void* recv, Count recvcount,
            Handle recvtype, int root, Handle comm) {
  Call call(Kind::Scatter, comm, how.kForm);
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
  if (!call.is_taken(bytes) || !how.is_ready(call))
    return below(send, sendcount, sendtype, recv, recvcount, recvtype, root, comm);
  if (is_root && theirs.bytes_of(sendcount) != bytes) return call.forbid(kUnequal);
  Steps steps{.kind = Kind::Scatter, .count = bytes, .root = root};
  if (is_root) steps.pack_from(how.given(), theirs, send, int64_t(sendcount) * call.size());
  if (is_here) {  // ccom does not write there
    steps.to = static_cast<std::byte*>(const_cast<void*>(steps.from)) + bytes * call.rank();
  } else {
    std::byte* const got = how.got().place(mine, recv, recvcount);
    steps.to = got;
    if (!mine.is_plain) steps.unpack = Move{mine, recv, recvcount, got};
  }
  return how.make(call, steps);
}

}  // namespace ccom::mpi
