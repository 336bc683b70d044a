// SPDX-License-Identifier: Apache-2.0
//
// Memory: allocation, registration, windows.
#include "memory/process_memory.h"

#include "api/handles.h"

// Both kinds of registration.
struct ccomWindow {
  ccomComm_t comm = nullptr;
  void* buffer = nullptr;
  size_t bytes = 0;
  bool is_reachable = false;      // to be undone
  std::vector<std::byte*> peers;  // windows: by rank, as mapped in this process; null if not accessible
};

namespace ccom {
namespace {

Status check_registration(ccomComm_t comm, const void* buffer, size_t bytes, const void* handle) {
  CCOM_TRY(check_handle(comm));
  if (handle == nullptr) return error(Code::InvalidArgument, "handle is NULL");
  if (buffer == nullptr && bytes > 0) return error(Code::InvalidArgument, "buffer is NULL, bytes is %zu", bytes);
  return {};
}

std::unique_ptr<ccomWindow> registered(ccomComm_t comm, void* buffer, size_t bytes) {
  auto made = std::make_unique<ccomWindow>();
  made->comm = comm;
  made->buffer = buffer;
  made->bytes = bytes;
  made->is_reachable = bytes > 0 && register_memory(buffer, bytes);
  return made;
}

Status deregister(ccomComm_t comm, ccomWindow* window) {
  CCOM_TRY(check_handle(comm));
  if (window == nullptr) return {};
  if (window->comm != comm) {
    return error(Code::InvalidArgument, "the buffer was registered with another communicator");
  }
  const std::unique_ptr<ccomWindow> owned(window);
  return owned->is_reachable ? deregister_memory(owned->buffer, owned->bytes) : Status();
}

}  // namespace
}  // namespace ccom

using namespace ccom;  // NOLINT(google-build-using-namespace): the C functions below are its border

ccomResult_t ccomMemAlloc(void** pointer, size_t bytes) {
  return guarded("ccomMemAlloc", [&]() -> Status {
    if (pointer == nullptr) return error(Code::InvalidArgument, "pointer is NULL");
    CCOM_TRY_ASSIGN(*pointer, allocate_shareable(bytes));
    return {};
  });
}

ccomResult_t ccomMemFree(void* pointer) {
  return guarded("ccomMemFree", [&]() { return free_shareable(pointer); });
}

ccomResult_t ccomCommRegister(ccomComm_t comm, void* buffer, size_t bytes, void** handle) {
  return guarded("ccomCommRegister", [&]() -> Status {
    CCOM_TRY(check_registration(comm, buffer, bytes, handle));
    *handle = registered(comm, buffer, bytes).release();
    return {};
  });
}

ccomResult_t ccomCommDeregister(ccomComm_t comm, void* handle) {
  return guarded("ccomCommDeregister", [&]() { return deregister(comm, static_cast<ccomWindow*>(handle)); });
}

ccomResult_t ccomCommWindowRegister(ccomComm_t comm, void* buffer, size_t bytes, ccomWindow_t* window, int flags) {
  return guarded("ccomCommWindowRegister", [&]() -> Status {
    CCOM_TRY(check_registration(comm, buffer, bytes, window));
    if (flags != 0) return error(Code::InvalidArgument, "flags is %d; it must be 0", flags);
    auto made = registered(comm, buffer, bytes);
    Communicator& communicator = *comm->communicator;
    Result<std::vector<std::byte*>> peers = communicator.locate(buffer, bytes);
    if (!peers) {
      const Status undone = deregister(comm, made.release());
      return undone.is_ok() ? std::move(peers).error() : undone;
    }
    made->peers = *std::move(peers);
    *window = made.release();
    return {};
  });
}

ccomResult_t ccomCommWindowDeregister(ccomComm_t comm, ccomWindow_t window) {
  return guarded("ccomCommWindowDeregister", [&]() { return deregister(comm, window); });
}

ccomResult_t ccomWinGetPeerPtr(ccomWindow_t window, int peer, void** pointer) {
  return guarded("ccomWinGetPeerPtr", [&]() -> Status {
    if (window == nullptr || pointer == nullptr) return error(Code::InvalidArgument, "window or pointer is NULL");
    const auto nranks = static_cast<int>(window->peers.size());
    if (peer < 0 || peer >= nranks) {
      return error(Code::InvalidArgument, "peer is %d; it must be within 0..%d", peer, nranks - 1);
    }
    *pointer = window->peers[static_cast<size_t>(peer)];
    if (*pointer != nullptr) return {};
    return error(ErrorKey::BufferNotAccessible, "rank %d's buffer is not accessible from this process", peer)
        .with_peers({peer})
        .with_cure("use memory of ccomMemAlloc, and ranks of one host");
  });
}
