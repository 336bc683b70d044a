// SPDX-License-Identifier: Apache-2.0
//
// Persistent calls: a collective whose arguments are looked at, and which is made ready, once.
#include "api/handles.h"

namespace ccom {
namespace {

Status check_alive(ccomPersistent_t call) {
  if (call->magic == ccomPersistent::kAlive) return {};
  return error(Code::InvalidArgument, "call is not a persistent call, or was already freed");
}

// And whether it can be started.
Status check_persistent(ccomPersistent_t call) {
  if (call == nullptr) return error(Code::InvalidArgument, "call is NULL");
  CCOM_TRY(check_alive(call));
  if (!call->home.expired()) return check_handle(call->comm);
  return error(Code::InvalidUsage, "the communicator of the persistent call was destroyed")
      .with_cure("free the call, and make another one on a communicator that exists");
}

Result<Collective> collective_named(const char* name) {
  if (name == nullptr) return error(Code::InvalidArgument, "collective is NULL");
  const std::optional<Collective> collective = collective_from(name);
  if (collective && *collective != Collective::SendReceive) return *collective;
  return error(Code::InvalidArgument, "unknown collective '%s'", name)
      .with_cure("name one of ccom.h's collectives in small letters without \"ccom\", as in \"allreduce\"");
}

}  // namespace
}  // namespace ccom

using namespace ccom;  // NOLINT(google-build-using-namespace): the C functions below are its border

ccomResult_t ccomPersistentInit(ccomPersistent_t* call, const char* collective, const void* send, void* recv,
                                size_t count, ccomDataType_t type, ccomRedOp_t op, int root, ccomComm_t comm) {
  return guarded("ccomPersistentInit", [&]() -> Status {
    if (call == nullptr) return error(Code::InvalidArgument, "call is NULL");
    CCOM_TRY_ASSIGN(const Collective which, collective_named(collective));
    Arguments arguments;
    if (which != Collective::Barrier)
      arguments = {.send = send, .recv = recv, .count = count, .type = type, .op = op, .root = root};
    CCOM_TRY_ASSIGN(CheckedCall checked, check_call(which, arguments, comm));
    CCOM_TRY_ASSIGN(const auto prepared, comm->communicator->prepare_alone(checked.request));
    auto made = std::make_unique<ccomPersistent>();
    made->home = comm->life;
    made->comm = comm;
    made->request = checked.request;
    made->keep = std::move(checked.keep);
    made->prepared = prepared;
    *call = made.release();
    return {};
  });
}

ccomResult_t ccomPersistentStart(ccomPersistent_t call, ccomStream_t stream) {
  const CallSite site = CCOM_CALL_SITE;
  return guarded("ccomPersistentStart", [&]() -> Status {
    CCOM_TRY(check_persistent(call));
    Communicator& communicator = *call->comm->communicator;
    Request request = call->request;
    request.timeout_ms = communicator.timeout_ms();
    request.site = site;
    if (call->prepared && stream == nullptr && !group_is_open()) return communicator.run(*call->prepared, request);
    return submit(call->comm, stream, request, call->keep);
  });
}

ccomResult_t ccomPersistentFree(ccomPersistent_t call) {
  return guarded("ccomPersistentFree", [&]() -> Status {
    if (call == nullptr) return {};
    CCOM_TRY(check_alive(call));
    delete call;
    return {};
  });
}
