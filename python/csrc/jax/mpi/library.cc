// SPDX-License-Identifier: Apache-2.0
//
// What XLA's collectives on CPUs need of MPI, on ccom: those of jax.distributed, with
// jax_cpu_collectives_implementation "mpi". jaxlib reaches MPI by a trampoline, which opens the library that
// MPITRAMPOLINE_LIB names and looks up MPIABI_...; of these XLA calls the functions below, from one thread at a time.
//
// A handle is a pointer to a Group. The world is a communicator that Python gives (ccom_mpi_set_world), else that of
// the launcher's environment. An error is the number of a text of this thread's, which MPI_Error_string returns at
// once.
#include <ccom/ccom.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "names.h"

namespace {

using Handle = uintptr_t;

constexpr int kSuccess = 0;
constexpr int kFailed = 1;
constexpr int kUndefined = -32766;

struct Group {
  ccomComm_t comm = nullptr;
  bool is_owned = true;
  std::string error;  // why there is no communicator
};

Group world;

// The parts of the world that XLA has; with `mutex` held. XLA frees few of them.
std::mutex mutex;
std::vector<Group*> parts;

// MPI_MAX_ERROR_STRING of the ABI.
constexpr size_t kErrorBytes = 1024;
thread_local std::string last_error;

// Where ranks are, in errors: XLA does not say from which line of the program a collective comes.
constexpr char kPlace[] = "a function of JAX";

int fail(std::string text) {
  last_error = std::move(text);
  return kFailed;
}

int checked(ccomResult_t result, ccomComm_t comm) {
  if (result == ccomSuccess) return kSuccess;
  const char* const text = ccomGetLastError(comm);
  return fail(text[0] != '\0' ? text : ccomGetErrorString(result));
}

Group& group_of(Handle handle) { return *reinterpret_cast<Group*>(handle); }

template <typename Fn>
int call(Handle handle, Fn make) {
  Group& group = group_of(handle);
  if (group.comm == nullptr) return fail(group.error.empty() ? "ccom: this communicator is closed" : group.error);
  ccomSetCallSite(kPlace);
  return checked(make(group.comm), group.comm);
}

// Handles of types and operators are ccom's numbers behind these.
constexpr Handle kTypes = 0x100;
constexpr Handle kOps = 0x200;

ccomDataType_t type_of(Handle handle) { return static_cast<ccomDataType_t>(handle - kTypes); }
ccomRedOp_t op_of(Handle handle) { return static_cast<ccomRedOp_t>(handle - kOps); }

ccomResult_t open_world(ccomComm_t* comm) {
  int rank = 0, size = 1;
  ccomUniqueId id;
  ccomResult_t result = ccomGetLaunch(&rank, &size, nullptr, nullptr);
  if (result == ccomSuccess) result = ccomUniqueIdFromUrl("env://", size, rank, &id);
  return result == ccomSuccess ? ccomCommInitRank(comm, size, id, rank) : result;
}

// Messages begin together, when the first of them is waited for: XLA posts all of a permutation's first.
struct Message {
  bool is_send;
  void* data;
  size_t count;
  ccomDataType_t type;
  int peer;
  Handle group;
};
thread_local std::vector<Message> posted;
thread_local int result_of_posted = kSuccess;

int post(const Message& message, Handle* request) {
  posted.push_back(message);
  *request = 1;
  return kSuccess;
}

int run_posted() {
  const std::vector<Message> messages = std::exchange(posted, {});
  ccomSetCallSite(kPlace);
  ccomResult_t result = ccomGroupStart();
  for (const Message& one : messages) {
    if (result != ccomSuccess) break;
    const ccomComm_t comm = group_of(one.group).comm;
    result = one.is_send ? ccomSend(one.data, one.count, one.type, one.peer, comm, nullptr)
                         : ccomRecv(one.data, one.count, one.type, one.peer, comm, nullptr);
  }
  const ccomResult_t end = ccomGroupEnd();
  return checked(result != ccomSuccess ? result : end, group_of(messages.front().group).comm);
}

int unsupported_function() {
  return fail("ccom has the part of MPI that XLA calls, and this function is not one of it");
}

}  // namespace

#define EXPORT extern "C" CCOM_API

// From Python, before JAX makes its client: the communicator of all of its processes, borrowed until it is set to null.
EXPORT void ccom_mpi_set_world(ccomComm_t comm) {
  world.comm = comm;
  world.is_owned = false;
}

EXPORT int MPIABI_Init_thread(int*, char***, int required, int* provided) {
  *provided = required;
  if (world.comm != nullptr || !world.is_owned) return kSuccess;
  const ccomResult_t result = open_world(&world.comm);
  if (result == ccomSuccess) return kSuccess;
  world.error = ccomGetLastError(nullptr);  // XLA does not look at this function's result, but at the next ones'
  std::fprintf(stderr, "ccom: MPI for XLA: %s\n", world.error.c_str());
  return fail(world.error);
}

EXPORT int MPIABI_Finalize() {
  const std::lock_guard lock(mutex);
  for (Group* const part : parts) {
    if (part->comm != nullptr) ccomCommDestroy(std::exchange(part->comm, nullptr));
  }
  if (world.is_owned && world.comm != nullptr) ccomCommDestroy(std::exchange(world.comm, nullptr));
  return kSuccess;
}

// ccom has no thread that is better than others.
EXPORT int MPIABI_Is_thread_main(int* flag) {
  *flag = 1;
  return kSuccess;
}

EXPORT int MPIABI_Comm_rank(Handle comm, int* rank) {
  *rank = 0;
  return call(comm, [rank](ccomComm_t one) { return ccomCommUserRank(one, rank); });
}

EXPORT int MPIABI_Comm_size(Handle comm, int* size) {
  *size = 1;
  return call(comm, [size](ccomComm_t one) { return ccomCommCount(one, size); });
}

// XLA does not look at the result: a communicator that could not be made says why at its first call.
EXPORT int MPIABI_Comm_split(Handle comm, int color, int key, Handle* split) {
  auto* const group = new Group;
  {
    const std::lock_guard lock(mutex);
    parts.push_back(group);
  }
  *split = reinterpret_cast<Handle>(group);
  const int result = call(comm, [&](ccomComm_t one) {
    return ccomCommSplit(one, color == kUndefined ? CCOM_SPLIT_NOCOLOR : color, key, &group->comm, nullptr);
  });
  if (result != kSuccess) group->error = last_error;
  return result;
}

EXPORT int MPIABI_Comm_free(Handle* comm) {
  Group* const group = &group_of(*comm);
  if (group == &world) return kSuccess;
  {
    const std::lock_guard lock(mutex);
    std::erase(parts, group);
  }
  if (group->comm != nullptr) ccomCommDestroy(group->comm);
  delete group;
  return kSuccess;
}

EXPORT int MPIABI_Error_string(int, char* text, int* length) {
  const size_t bytes = std::min(last_error.size(), kErrorBytes - 1);
  std::memcpy(text, last_error.data(), bytes);
  text[bytes] = '\0';
  *length = static_cast<int>(bytes);
  return kSuccess;
}

EXPORT int MPIABI_Barrier(Handle comm) {
  return call(comm, [](ccomComm_t one) { return ccomBarrier(one, nullptr); });
}

extern "C" {
CCOM_API Handle MPIABI_IN_PLACE = 0x301;
}

EXPORT int MPIABI_Allreduce(const void* send, void* receive, int count, Handle type, Handle op, Handle comm) {
  if (reinterpret_cast<Handle>(send) == MPIABI_IN_PLACE) send = receive;
  return call(comm, [=](ccomComm_t one) {
    return ccomAllReduce(send, receive, static_cast<size_t>(count), type_of(type), op_of(op), one, nullptr);
  });
}

EXPORT int MPIABI_Allgather(const void* send, int count, Handle type, void* receive, int, Handle, Handle comm) {
  return call(comm, [=](ccomComm_t one) {
    return ccomAllGather(send, receive, static_cast<size_t>(count), type_of(type), one, nullptr);
  });
}

EXPORT int MPIABI_Reduce_scatter(const void* send, void* receive, const int* counts, Handle type, Handle op,
                                 Handle comm) {
  return call(comm, [=](ccomComm_t one) {
    int size = 0;
    const ccomResult_t result = ccomCommCount(one, &size);
    if (result != ccomSuccess) return result;
    if (std::all_of(counts, counts + size, [counts](int count) { return count == *counts; }))
      return ccomReduceScatter(send, receive, static_cast<size_t>(*counts), type_of(type), op_of(op), one, nullptr);
    const std::vector<size_t> parts(counts, counts + size);
    return ccomReduceScatterV(send, receive, parts.data(), type_of(type), op_of(op), one, nullptr);
  });
}

EXPORT int MPIABI_Irecv(void* data, int count, Handle type, int peer, int, Handle comm, Handle* request) {
  return post({false, data, static_cast<size_t>(count), type_of(type), peer, comm}, request);
}

EXPORT int MPIABI_Isend(const void* data, int count, Handle type, int peer, int, Handle comm, Handle* request) {
  return post({true, const_cast<void*>(data), static_cast<size_t>(count), type_of(type), peer, comm}, request);
}

EXPORT int MPIABI_Wait(Handle* request, void*) {
  *request = 0;
  if (!posted.empty()) result_of_posted = run_posted();
  return result_of_posted;
}

EXPORT int MPIABI_Sendrecv(const void* send, int send_count, Handle send_type, int to, int, void* receive,
                           int receive_count, Handle receive_type, int from, int, Handle comm, void* status) {
  Handle request;
  post({true, const_cast<void*>(send), static_cast<size_t>(send_count), type_of(send_type), to, comm}, &request);
  post({false, receive, static_cast<size_t>(receive_count), type_of(receive_type), from, comm}, &request);
  return MPIABI_Wait(&request, status);
}

extern "C" {
#define NUMBER(name, value) CCOM_API int name = value;
NUMBER(mpiwrapper_version_major, CCOM_MAJOR)
NUMBER(mpiwrapper_version_minor, CCOM_MINOR)
NUMBER(mpiwrapper_version_patch, CCOM_PATCH)
NUMBER(mpiabi_version_major, 2)
NUMBER(mpiabi_version_minor, 9)
NUMBER(mpiabi_version_patch, 0)
NUMBER(MPIABI_SUCCESS, kSuccess)
NUMBER(MPIABI_UNDEFINED, kUndefined)
NUMBER(MPIABI_THREAD_SINGLE, 0)
NUMBER(MPIABI_THREAD_FUNNELED, 1)
NUMBER(MPIABI_THREAD_SERIALIZED, 2)
NUMBER(MPIABI_THREAD_MULTIPLE, 3)

#define HANDLE(name, value) CCOM_API Handle MPIABI_##name = value;
CCOM_API Handle MPIABI_COMM_WORLD = reinterpret_cast<Handle>(&world);
HANDLE(COMM_NULL, 0)
HANDLE(REQUEST_NULL, 0)
HANDLE(STATUS_IGNORE, 0)
HANDLE(SUM, kOps + ccomSum)
HANDLE(PROD, kOps + ccomProd)
HANDLE(MAX, kOps + ccomMax)
HANDLE(MIN, kOps + ccomMin)
HANDLE(BYTE, kTypes + ccomUint8)
HANDLE(UINT8_T, kTypes + ccomUint8)
HANDLE(UINT16_T, kTypes + ccomUint16)
HANDLE(UINT32_T, kTypes + ccomUint32)
HANDLE(UINT64_T, kTypes + ccomUint64)
HANDLE(INT8_T, kTypes + ccomInt8)
HANDLE(INT16_T, kTypes + ccomInt16)
HANDLE(INT32_T, kTypes + ccomInt32)
HANDLE(INT64_T, kTypes + ccomInt64)
HANDLE(FLOAT, kTypes + ccomFloat32)
HANDLE(DOUBLE, kTypes + ccomFloat64)
HANDLE(C_COMPLEX, kTypes + ccomComplex64)
HANDLE(C_FLOAT_COMPLEX, kTypes + ccomComplex64)
HANDLE(C_DOUBLE_COMPLEX, kTypes + ccomComplex128)

// Distinct, so that XLA's comparisons of handles hold.
#define UNUSED_NUMBER(name) CCOM_API int MPIABI_##name = 0x7000 + __COUNTER__;
#define UNUSED_HANDLE(name) CCOM_API Handle MPIABI_##name = 0x7000 + __COUNTER__;
#define UNUSED_FUNCTION(name) \
  CCOM_API int MPIABI_##name() { return unsupported_function(); }
CCOM_MPI_UNUSED_NUMBERS(UNUSED_NUMBER)
CCOM_MPI_UNUSED_HANDLES(UNUSED_HANDLE)
CCOM_MPI_UNUSED_FUNCTIONS(UNUSED_FUNCTION)
CCOM_API void mpiwrapper_export_fortran_constants_() {}
CCOM_API int MPIXABI_Query_cuda_support() { return 0; }
CCOM_API int MPIXABI_Query_hip_support() { return 0; }
CCOM_API int MPIXABI_Query_ze_support() { return 0; }
}
