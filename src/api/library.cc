// SPDX-License-Identifier: Apache-2.0
//
// Version, errors, log and parameters.
#include <pthread.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <string_view>

#include "api/handles.h"
#include "api/structs.h"
#include "base/fork.h"
#include "base/log.h"
#include "base/log_writer.h"
#include "base/options.h"
#include "base/per_thread.h"
#include "base/version.h"

namespace ccom {

#define CCOM_TEXT(x) #x
#define CCOM_VERSION_TEXT(major, minor, patch) CCOM_TEXT(major) "." CCOM_TEXT(minor) "." CCOM_TEXT(patch)
static_assert(std::string_view(kVersion) == CCOM_VERSION_TEXT(CCOM_MAJOR, CCOM_MINOR, CCOM_PATCH));
#undef CCOM_VERSION_TEXT
#undef CCOM_TEXT

// The C enums and the C++ ones are identical.
#define CCOM_SAME(ours, theirs) static_assert(static_cast<int>(ours) == static_cast<int>(theirs))
CCOM_SAME(Code::Ok, ccomSuccess);
CCOM_SAME(Code::SystemError, ccomSystemError);
CCOM_SAME(Code::InternalError, ccomInternalError);
CCOM_SAME(Code::InvalidArgument, ccomInvalidArgument);
CCOM_SAME(Code::InvalidUsage, ccomInvalidUsage);
CCOM_SAME(Code::RemoteError, ccomRemoteError);
CCOM_SAME(Code::InProgress, ccomInProgress);
CCOM_SAME(Code::Timeout, ccomTimeout);
CCOM_SAME(Code::Mismatch, ccomMismatch);
CCOM_SAME(Code::Aborted, ccomAborted);
CCOM_SAME(Code::Revoked, ccomRevoked);
CCOM_SAME(Code::OutOfMemory, ccomOutOfMemory);
CCOM_SAME(Code::ConfigError, ccomConfigError);
CCOM_SAME(Code::TransportError, ccomTransportError);
CCOM_SAME(Code::NotSupported, ccomNotSupported);
CCOM_SAME(Code::OperatorError, ccomOperatorError);
CCOM_SAME(DataType::Int8, ccomInt8);
CCOM_SAME(DataType::Uint8, ccomUint8);
CCOM_SAME(DataType::Int32, ccomInt32);
CCOM_SAME(DataType::Uint32, ccomUint32);
CCOM_SAME(DataType::Int64, ccomInt64);
CCOM_SAME(DataType::Uint64, ccomUint64);
CCOM_SAME(DataType::Float16, ccomFloat16);
CCOM_SAME(DataType::Float32, ccomFloat32);
CCOM_SAME(DataType::Float64, ccomFloat64);
CCOM_SAME(DataType::Bfloat16, ccomBfloat16);
CCOM_SAME(DataType::Float8e4m3, ccomFloat8e4m3);
CCOM_SAME(DataType::Float8e5m2, ccomFloat8e5m2);
CCOM_SAME(DataType::Int16, ccomInt16);
CCOM_SAME(DataType::Uint16, ccomUint16);
CCOM_SAME(DataType::Bool, ccomBool);
CCOM_SAME(DataType::Complex64, ccomComplex64);
CCOM_SAME(DataType::Complex128, ccomComplex128);
CCOM_SAME(ReduceOp::Sum, ccomSum);
CCOM_SAME(ReduceOp::Prod, ccomProd);
CCOM_SAME(ReduceOp::Max, ccomMax);
CCOM_SAME(ReduceOp::Min, ccomMin);
CCOM_SAME(ReduceOp::Avg, ccomAvg);
CCOM_SAME(ReduceOp::Band, ccomBand);
CCOM_SAME(ReduceOp::Bor, ccomBor);
CCOM_SAME(ReduceOp::Bxor, ccomBxor);
CCOM_SAME(ReduceOp::Land, ccomLand);
CCOM_SAME(ReduceOp::Lor, ccomLor);
CCOM_SAME(LogLevel::Error, ccomLogError);
CCOM_SAME(LogLevel::Debug, ccomLogDebug);
#undef CCOM_SAME

namespace {

// Written by the child of a fork before it has other threads.

struct LastError {
  Status status;
  std::string text;  // what ccomGetLastError returned
};
PerThread<LastError> last_errors;

template <size_t N>
void copy_text(char (&target)[N], const std::string& text) {
  const size_t length = std::min(text.size(), N - 1);
  std::memcpy(target, text.data(), length);
  target[length] = '\0';
}

}  // namespace

Status check_alive(ccomComm_t comm) {
  if (comm == nullptr) return error(Code::InvalidArgument, "comm is NULL");
  if (comm->magic != ccomComm::kAlive)
    return error(Code::InvalidArgument, "comm is not a communicator, or was already destroyed");
  if (comm->generation != fork_generation()) {
    return error(ErrorKey::Forked, "the communicator was created before fork() and belongs to the parent process")
        .with_cure("create the first communicator after fork(), or start processes with exec or the spawn method");
  }
  return {};
}

Status refuse_handle(ccomComm_t comm) {
  CCOM_TRY(check_alive(comm));
  if (comm->background.is_running()) [[unlikely]]
    return call_under_way();
  return comm->communicator == nullptr ? comm->background.result() : Status();
}

Status check_reach(const Communicator& communicator, Rank peer) {
  if (communicator.reaches(peer)) return {};
  return error(ErrorKey::NoLink, "rank %d and rank %d share no link of the imposed topology, and no ranks join them",
               communicator.rank(), peer)
      .with_peers({peer});
}

Status state_of(ccomComm_t comm) {
  if (comm->background.is_running()) return error(Code::InProgress, "the call before is under way");
  return comm->communicator == nullptr ? comm->background.result() : comm->communicator->status();
}

Status last_error() {
  LastError* const mine = last_errors.get();
  return mine != nullptr ? mine->status : out_of_memory();
}

// Who gets an error may end the process at once.
ccomResult_t remember(const Status& status) noexcept {
  flush_log();
  if (LastError* const mine = last_errors.get()) mine->status = status;
  return static_cast<ccomResult_t>(status.code());
}

namespace {

void fill_info(const Status& status, ccomErrorInfo_t* info) {
  info->result = static_cast<ccomResult_t>(status.code());
  info->nPeers = static_cast<int>(status.peers().size());
  const size_t peers = std::min(status.peers().size(), size_t{CCOM_MAX_ERROR_PEERS});
  std::copy_n(status.peers().begin(), peers, info->peers);
  info->sysErrno = status.sys_errno();
  copy_text(info->host, status.host());
  copy_text(info->text, status.message());
  copy_text(info->cure, status.cure());
  copy_text(info->key, status.is_ok() ? "" : name_of(status.key()));
}

void fill_failed_call(const Communicator::FailedCall& call, ccomErrorInfo_t* info) {
  copy_text(info->operation, call.operation);
  info->sequence = call.sequence;
}

}  // namespace
}  // namespace ccom

using namespace ccom;  // NOLINT(google-build-using-namespace): the C functions below are its border

ccomResult_t ccomGetVersion(int* version) {
  return guarded("ccomGetVersion", [&]() -> Status {
    if (version == nullptr) return error(Code::InvalidArgument, "version is NULL");
    *version = CCOM_VERSION_CODE;
    return {};
  });
}

const char* ccomGetErrorString(ccomResult_t result) { return describe(static_cast<Code>(result)); }

const char* ccomGetLastError(ccomComm_t comm) {
  LastError* const mine = last_errors.get();
  try {
    if (mine == nullptr) throw std::bad_alloc();
    Status of_comm = comm != nullptr && check_alive(comm).is_ok() ? state_of(comm) : Status::ok();
    if (of_comm.code() == Code::InProgress) of_comm = {};
    mine->text = (of_comm.is_ok() ? last_error() : of_comm).text();
    return mine->text.c_str();
  } catch (const std::bad_alloc&) {
    return describe(Code::OutOfMemory);
  }
}

ccomResult_t ccomGetErrorInfo(ccomComm_t comm, ccomErrorInfo_t* info) {
  return guarded("ccomGetErrorInfo", [&]() -> Status {
    CCOM_TRY(check_struct(info, {"info", "CCOM_ERROR_INFO_INIT"}));
    ccomErrorInfo_t known = CCOM_ERROR_INFO_INIT;
    if (comm == nullptr) {
      fill_info(last_error(), &known);
    } else {
      CCOM_TRY(check_alive(comm));
      const Status state = state_of(comm);
      if (state.code() != Code::InProgress) fill_info(state, &known);
      if (!comm->background.is_running() && comm->communicator != nullptr)
        fill_failed_call(comm->communicator->failed_call(), &known);
    }
    write_struct(known, info);
    return {};
  });
}

ccomResult_t ccomSetLogCallback(ccomLogFn fn, void* user) {
  // Same enumerators and representation; the calling convention is C's either way.
  set_log_function(reinterpret_cast<LogFunction>(fn), user);
  return ccomSuccess;
}

namespace {

// The values live as long as the process: the list is returned by pointer.
struct Parameters {
  Parameters() {
    for (const OptionInfo& info : option_table()) {
      values.push_back(option(info.key));
      descriptions.push_back({sizeof(ccomParamDesc_t), info.key, nullptr, info.default_value,
                              option_is_set(info.key) ? "environment" : "default", info.help});
    }
    for (size_t i = 0; i < values.size(); ++i) {
      const bool secret = std::strcmp(descriptions[i].key, "CCOM_SECRET") == 0 && !values[i].empty();
      descriptions[i].value = secret ? "(set)" : values[i].c_str();
      list.push_back(&descriptions[i]);
    }
  }
  std::vector<std::string> values;
  std::vector<ccomParamDesc_t> descriptions;
  std::vector<const ccomParamDesc_t*> list;  // so that the descriptions may become longer
};

const Parameters& parameters() {
  static constinit MadeOnce<Parameters> all;
  return all.get([] { return Parameters(); });
}

}  // namespace

ccomResult_t ccomParamList(const ccomParamDesc_t* const** list, size_t* n) {
  return guarded("ccomParamList", [&]() -> Status {
    if (list == nullptr || n == nullptr) return error(Code::InvalidArgument, "list or n is NULL");
    *list = parameters().list.data();
    *n = parameters().list.size();
    return {};
  });
}

namespace ccom {
// Text output of ccomParamGet and ccomExplain: *length is the buffer's size and becomes the required size.
Status copy_out(const std::string& text, char* buffer, size_t* length) {
  if (length == nullptr) return error(Code::InvalidArgument, "length is NULL");
  const size_t room = buffer == nullptr ? 0 : *length;
  *length = text.size() + 1;
  if (room == 0) return {};
  const size_t copied = std::min(text.size(), room - 1);
  std::memcpy(buffer, text.data(), copied);
  buffer[copied] = '\0';
  if (copied < text.size())
    return error(Code::InvalidArgument, "the buffer of %zu bytes is too small: %zu are needed", room, *length);
  return {};
}
}  // namespace ccom

ccomResult_t ccomParamGet(const char* key, char* value, size_t* length, const char** origin) {
  return guarded("ccomParamGet", [&]() -> Status {
    if (key == nullptr) return error(Code::InvalidArgument, "key is NULL");
    for (const ccomParamDesc_t& parameter : parameters().descriptions) {
      if (std::strcmp(parameter.key, key) != 0) continue;
      if (origin != nullptr) *origin = parameter.origin;
      return copy_out(parameter.value, value, length);
    }
    return error(Code::InvalidArgument, "unknown parameter %s; ccomParamList lists all", key);
  });
}
