// SPDX-License-Identifier: Apache-2.0
//
// Collectives and point-to-point calls: converts arguments into a Request.
#include <optional>
#include <string>

#include "api/handles.h"
#include "kernels/kernels.h"

namespace ccom {
namespace {

Status check_send(const Arguments& a, size_t count) {
  if (count == 0 || a.send != nullptr) return {};
  return error(Code::InvalidArgument, "send is NULL, but %zu elements are to be read", count);
}

Status check_recv(const Arguments& a, size_t count) {
  if (count == 0 || a.recv != nullptr) return {};
  return error(Code::InvalidArgument, "recv is NULL, but %zu elements are to be written", count);
}

Status check_buffers(Collective collective, const Arguments& a, Rank rank, int nranks) {
  const size_t element = size_of(static_cast<DataType>(a.type));
  const BufferUse use = buffer_use(collective, rank, nranks, a.root, a.count * element);
  CCOM_TRY(check_send(a, use.input_bytes / element));
  CCOM_TRY(check_recv(a, use.output_bytes / element));
  if (use.is_legal(a.send, a.recv)) return {};
  return error(Code::InvalidArgument, "send and recv overlap, but not as defined for in-place calls")
      .with_cure("use separate buffers, or the in-place form documented in ccom.h");
}

Status check_residual(const Arguments& a) {
  if (a.count == 0) return {};
  if (a.residual == nullptr)
    return error(Code::InvalidArgument, "residual is NULL, but %zu elements are to be written", a.count);
  if (a.count > SIZE_MAX / sizeof(float))
    return error(Code::InvalidArgument, "count %zu is too large for a residual", a.count);
  const size_t bytes = a.count * size_of(static_cast<DataType>(a.type));
  const ConstBytes residual{static_cast<const std::byte*>(a.residual), a.count * sizeof(float)};
  const ConstBytes send{static_cast<const std::byte*>(a.send), bytes},
      recv{static_cast<const std::byte*>(a.recv), bytes};
  if (!overlap(residual, send) && !overlap(residual, recv)) return {};
  return error(Code::InvalidArgument, "residual overlaps send or recv").with_cure("give it memory of its own");
}

// A call that the communicator does not know, or that does not run now.
Status check_and_submit(Collective collective, const Arguments& a, ccomComm_t comm, ccomStream_t stream,
                        MoreChecks check_more) {
  CCOM_TRY_ASSIGN(CheckedCall call, check_call(collective, a, comm, check_more));
  call.request.timeout_ms = comm->communicator->timeout_ms();
  call.request.site = call_site(a.caller);
  return submit(comm, stream, call.request, std::move(call.keep));
}

template <Collective collective>
[[gnu::always_inline]] inline ccomResult_t call(const char* function, const Arguments& a, ccomComm_t comm,
                                                ccomStream_t stream, MoreChecks check_more = nullptr) {
  return guarded(function, [&]() -> Status {
    const bool runs_now = stream == nullptr && !group_is_open();
    if (runs_now && check_more == nullptr && is_ready(comm) && has_kind(a.type, a.op, a.root)) [[likely]] {
      const uint64_t kind = kind_of(collective, static_cast<DataType>(a.type), static_cast<ReduceOp>(a.op), false,
                                    is_rooted(collective) ? a.root : -1);
      if (std::optional<Status> done = comm->communicator->run_known(kind, a.count, a.send, a.recv, a.caller))
          [[likely]]
        return *std::move(done);
    }
    return check_and_submit(collective, Arguments(a), comm, stream, check_more);  // a copy: `a` stays in registers
  });
}

ccomResult_t transfer(const char* function, bool sends, const Arguments& a, ccomComm_t comm, ccomStream_t stream) {
  return guarded(function, [&]() -> Status {
    CCOM_TRY(check_handle(comm));
    const int nranks = comm->communicator->nranks();
    CCOM_TRY(check_size(a.count, a.type, nranks));
    CCOM_TRY(check_rank_argument("peer", a.peer, nranks));
    CCOM_TRY(sends ? check_send(a, a.count) : check_recv(a, a.count));
    if (a.peer == comm->communicator->rank() && !group_is_open()) {
      return error(ErrorKey::MessageToItself,
                   "rank %d cannot send to or receive from itself outside a group: it would deadlock", a.peer)
          .with_cure("put both calls between ccomGroupStart and ccomGroupEnd");
    }
    CCOM_TRY(check_reach(*comm->communicator, a.peer));
    Request request;
    request.collective = Collective::SendReceive;
    request.input = static_cast<const std::byte*>(a.send);
    request.output = static_cast<std::byte*>(a.recv);
    request.count = a.count;
    request.type = static_cast<DataType>(a.type);
    request.peer = a.peer;
    request.sends = sends;
    request.timeout_ms = comm->communicator->timeout_ms();
    request.site = call_site(a.caller);
    return submit(comm, stream, request);
  });
}

}  // namespace

Result<CheckedCall> check_call(Collective collective, const Arguments& a, ccomComm_t comm, MoreChecks check_more) {
  CCOM_TRY(check_handle(comm));
  const int nranks = comm->communicator->nranks();
  CCOM_TRY(check_size(a.count, a.type, nranks));
  if (is_rooted(collective)) CCOM_TRY(check_rank_argument("root", a.root, nranks));
  CCOM_TRY(check_buffers(collective, a, comm->communicator->rank(), nranks));
  if (check_more != nullptr) CCOM_TRY(check_more(a));
  CheckedCall call;
  Request& request = call.request;
  request.collective = collective;
  request.input = static_cast<const std::byte*>(a.send);
  request.output = static_cast<std::byte*>(a.recv);
  request.count = a.count;
  request.type = static_cast<DataType>(a.type);
  request.root = is_rooted(collective) ? a.root : -1;
  request.residual = static_cast<std::byte*>(a.residual);
  if (reduces(collective)) CCOM_TRY(resolve_operator(comm, a.op, request, call.keep));
  return call;
}

Status check_rank_argument(const char* name, int value, int nranks) {
  if (value >= 0 && value < nranks) return {};
  return error(Code::InvalidArgument, "%s is %d; it must be within 0..%d", name, value, nranks - 1);
}

Status resolve_operator(ccomComm_t comm, ccomRedOp_t op, Request& request, std::shared_ptr<const void>& keep) {
  if (op >= ccomNumOps) {
    const Lock lock(comm->operators_mutex);
    const auto index = static_cast<size_t>(op - ccomNumOps);
    if (index >= comm->operators.size() || comm->operators[index] == nullptr) {
      return error(Code::InvalidArgument, "op %d is not an operator of this communicator, or was destroyed", op);
    }
    const CreatedOperator& created = *comm->operators[index];
    keep = comm->operators[index];
    if (created.user != nullptr) {
      request.op = created.user->op();
      request.user = created.user.get();
      return {};
    }
    if (created.type != request.type) {
      return error(Code::InvalidArgument, "op %d was created for %s, but the call is for %s", op,
                   std::string(name_of(created.type)).c_str(), std::string(name_of(request.type)).c_str());
    }
    request.op = ReduceOp::Sum;
    request.multiplier = created.device != nullptr ? created.device : created.scalar.data();
    return {};
  }
  const bool known = (op >= ccomSum && op <= ccomAvg) || (op >= ccomBand && op <= ccomLor);
  if (!known) return error(Code::InvalidArgument, "op %d is unknown", op);
  request.op = static_cast<ReduceOp>(op);
  if (is_legal(request.type, request.op)) return {};
  return error(Code::InvalidArgument, "%s is not defined for %s", std::string(name_of(request.op)).c_str(),
               std::string(name_of(request.type)).c_str());
}

Status check_size(size_t count, ccomDataType_t type, int nranks) {
  const bool fits = static_cast<int>(type) >= 0 && static_cast<int>(type) <= UINT8_MAX;  // our enum is one byte
  const bool is_known = fits && !is_block(static_cast<DataType>(type));
  const size_t element = is_known ? size_of(static_cast<DataType>(type)) : 0;
  if (element == 0) return error(Code::InvalidArgument, "type %d is unknown", static_cast<int>(type));
  size_t bytes = 0;  // multiplied: two divisions would be a tenth of a small call
  if (__builtin_mul_overflow(count, element * static_cast<size_t>(nranks), &bytes) || bytes > PTRDIFF_MAX) {
    return error(Code::InvalidArgument, "count %zu is too large: the buffers would exceed the address space", count);
  }
  return {};
}

}  // namespace ccom

using namespace ccom;  // NOLINT(google-build-using-namespace): the C functions below are its border

ccomResult_t ccomAllReduce(const void* send, void* recv, size_t count, ccomDataType_t type, ccomRedOp_t op,
                           ccomComm_t comm, ccomStream_t stream) {
  return call<Collective::AllReduce>(
      "ccomAllReduce", {.send = send, .recv = recv, .count = count, .type = type, .op = op, .caller = CCOM_CALLER},
      comm, stream);
}

ccomResult_t ccomAllReduceResidual(const void* send, void* recv, void* residual, size_t count, ccomDataType_t type,
                                   ccomRedOp_t op, ccomComm_t comm, ccomStream_t stream) {
  const Arguments arguments{
      .send = send, .recv = recv, .count = count, .type = type, .op = op, .residual = residual, .caller = CCOM_CALLER};
  return call<Collective::AllReduce>("ccomAllReduceResidual", arguments, comm, stream, check_residual);
}

ccomResult_t ccomAllGather(const void* send, void* recv, size_t sendcount, ccomDataType_t type, ccomComm_t comm,
                           ccomStream_t stream) {
  return call<Collective::AllGather>(
      "ccomAllGather", {.send = send, .recv = recv, .count = sendcount, .type = type, .caller = CCOM_CALLER}, comm,
      stream);
}

ccomResult_t ccomReduceScatter(const void* send, void* recv, size_t recvcount, ccomDataType_t type, ccomRedOp_t op,
                               ccomComm_t comm, ccomStream_t stream) {
  return call<Collective::ReduceScatter>(
      "ccomReduceScatter",
      {.send = send, .recv = recv, .count = recvcount, .type = type, .op = op, .caller = CCOM_CALLER}, comm, stream);
}

ccomResult_t ccomBroadcast(const void* send, void* recv, size_t count, ccomDataType_t type, int root, ccomComm_t comm,
                           ccomStream_t stream) {
  return call<Collective::Broadcast>(
      "ccomBroadcast", {.send = send, .recv = recv, .count = count, .type = type, .root = root, .caller = CCOM_CALLER},
      comm, stream);
}

ccomResult_t ccomReduce(const void* send, void* recv, size_t count, ccomDataType_t type, ccomRedOp_t op, int root,
                        ccomComm_t comm, ccomStream_t stream) {
  return call<Collective::Reduce>(
      "ccomReduce",
      {.send = send, .recv = recv, .count = count, .type = type, .op = op, .root = root, .caller = CCOM_CALLER}, comm,
      stream);
}

ccomResult_t ccomAlltoAll(const void* send, void* recv, size_t count, ccomDataType_t type, ccomComm_t comm,
                          ccomStream_t stream) {
  return call<Collective::AllToAll>(
      "ccomAlltoAll", {.send = send, .recv = recv, .count = count, .type = type, .caller = CCOM_CALLER}, comm, stream);
}

ccomResult_t ccomGather(const void* send, void* recv, size_t count, ccomDataType_t type, int root, ccomComm_t comm,
                        ccomStream_t stream) {
  return call<Collective::Gather>(
      "ccomGather", {.send = send, .recv = recv, .count = count, .type = type, .root = root, .caller = CCOM_CALLER},
      comm, stream);
}

ccomResult_t ccomScatter(const void* send, void* recv, size_t count, ccomDataType_t type, int root, ccomComm_t comm,
                         ccomStream_t stream) {
  return call<Collective::Scatter>(
      "ccomScatter", {.send = send, .recv = recv, .count = count, .type = type, .root = root, .caller = CCOM_CALLER},
      comm, stream);
}

ccomResult_t ccomBarrier(ccomComm_t comm, ccomStream_t stream) {
  return call<Collective::Barrier>("ccomBarrier", {.caller = CCOM_CALLER}, comm, stream);
}

ccomResult_t ccomSend(const void* send, size_t count, ccomDataType_t type, int peer, ccomComm_t comm,
                      ccomStream_t stream) {
  return transfer("ccomSend", true, {.send = send, .count = count, .type = type, .peer = peer, .caller = CCOM_CALLER},
                  comm, stream);
}

ccomResult_t ccomRecv(void* recv, size_t count, ccomDataType_t type, int peer, ccomComm_t comm, ccomStream_t stream) {
  return transfer("ccomRecv", false, {.recv = recv, .count = count, .type = type, .peer = peer, .caller = CCOM_CALLER},
                  comm, stream);
}
