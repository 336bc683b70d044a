// SPDX-License-Identifier: Apache-2.0
//
// ccom's collectives as custom calls of XLA, through its foreign function interface, which is a C ABI.
//
// Each handler takes some arrays and as many results, in this order, and a token on either side, which keeps the calls
// of a process in the order of its program (ccom/jax/_primitives.py). Several arrays are one group of ccom's. A call
// blocks in the thread in which XLA runs it.
#include <xla/ffi/api/ffi.h>

#include <cstring>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <string_view>

#include "communicators.h"

namespace ccom_jax {
namespace {

namespace ffi = xla::ffi;

struct Call {
  ccomComm_t comm;
  int rank;
  int size;
  ccomRedOp_t op;
  int peer;    // the root, or whom it is sent to; -1: nobody
  int source;  // of an exchange; -1: nobody
};

struct Buffer {
  void* data;
  size_t count;
  size_t bytes;
  ccomDataType_t type;
};

// How many elements a result has for each element of its array. Blocks: as many, a block for each rank. Exchanged: the
// array goes to one rank and the result comes from one, if there are such. None: no arrays. A function may have been
// compiled for a communicator of another size than the one whose number it has now.
enum class Sizes { Equal, Blocks, TimesRanks, ByRanks, TimesRanksOnRoot, ByRanksOnRoot, Exchanged, None };

bool are_right(Sizes sizes, const Call& call, const Buffer* sent, const Buffer* received) {
  if (sizes == Sizes::None) return true;
  if (sizes == Sizes::Exchanged) return (call.peer < 0 || sent != nullptr) && (call.source < 0 || received != nullptr);
  if (sent == nullptr || received == nullptr || sent->type != received->type) return false;
  const bool is_of_root = sizes == Sizes::TimesRanksOnRoot || sizes == Sizes::ByRanksOnRoot;
  if (is_of_root && call.rank != call.peer) return true;  // one of the two is not looked at
  const auto ranks = static_cast<size_t>(call.size);
  const bool is_longer = sizes == Sizes::TimesRanks || sizes == Sizes::TimesRanksOnRoot;
  const bool is_shorter = sizes == Sizes::ByRanks || sizes == Sizes::ByRanksOnRoot;
  return sent->count * (is_longer ? ranks : 1) == received->count * (is_shorter ? ranks : 1) &&
         (sizes != Sizes::Blocks || sent->count % ranks == 0);
}

// The handler's buffers, of which are_right() has been asked.
using Fn = ccomResult_t (*)(const Call& call, const Buffer* sent, const Buffer* received);

ccomResult_t all_reduce(const Call& call, const Buffer* sent, const Buffer* received) {
  return ccomAllReduce(sent->data, received->data, sent->count, sent->type, call.op, call.comm, nullptr);
}

ccomResult_t all_gather(const Call& call, const Buffer* sent, const Buffer* received) {
  return ccomAllGather(sent->data, received->data, sent->count, sent->type, call.comm, nullptr);
}

ccomResult_t reduce_scatter(const Call& call, const Buffer* sent, const Buffer* received) {
  return ccomReduceScatter(sent->data, received->data, received->count, sent->type, call.op, call.comm, nullptr);
}

ccomResult_t all_to_all(const Call& call, const Buffer* sent, const Buffer* received) {
  return ccomAlltoAll(sent->data, received->data, sent->count / static_cast<size_t>(call.size), sent->type, call.comm,
                      nullptr);
}

ccomResult_t broadcast(const Call& call, const Buffer* sent, const Buffer* received) {
  return ccomBroadcast(sent->data, received->data, sent->count, sent->type, call.peer, call.comm, nullptr);
}

ccomResult_t reduce(const Call& call, const Buffer* sent, const Buffer* received) {
  if (call.rank != call.peer) std::memset(received->data, 0, received->bytes);
  return ccomReduce(sent->data, received->data, sent->count, sent->type, call.op, call.peer, call.comm, nullptr);
}

ccomResult_t gather(const Call& call, const Buffer* sent, const Buffer* received) {
  return ccomGather(sent->data, received->data, sent->count, sent->type, call.peer, call.comm, nullptr);
}

ccomResult_t scatter(const Call& call, const Buffer* sent, const Buffer* received) {
  return ccomScatter(sent->data, received->data, received->count, received->type, call.peer, call.comm, nullptr);
}

ccomResult_t exchange(const Call& call, const Buffer* sent, const Buffer* received) {
  if (call.source < 0 && received != nullptr) std::memset(received->data, 0, received->bytes);
  if (call.peer < 0 && call.source < 0) return ccomSuccess;
  ccomResult_t result = ccomGroupStart();
  if (result != ccomSuccess) return result;
  if (call.peer >= 0) result = ccomSend(sent->data, sent->count, sent->type, call.peer, call.comm, nullptr);
  if (result == ccomSuccess && call.source >= 0)
    result = ccomRecv(received->data, received->count, received->type, call.source, call.comm, nullptr);
  const ccomResult_t end = ccomGroupEnd();
  return result != ccomSuccess ? result : end;
}

ccomResult_t barrier(const Call& call, const Buffer*, const Buffer*) { return ccomBarrier(call.comm, nullptr); }

bool find_type(ffi::DataType type, ccomDataType_t* found) {
  switch (type) {
    case ffi::DataType::PRED: *found = ccomBool; return true;
    case ffi::DataType::S8: *found = ccomInt8; return true;
    case ffi::DataType::S16: *found = ccomInt16; return true;
    case ffi::DataType::S32: *found = ccomInt32; return true;
    case ffi::DataType::S64: *found = ccomInt64; return true;
    case ffi::DataType::U8: *found = ccomUint8; return true;
    case ffi::DataType::U16: *found = ccomUint16; return true;
    case ffi::DataType::U32: *found = ccomUint32; return true;
    case ffi::DataType::U64: *found = ccomUint64; return true;
    case ffi::DataType::F16: *found = ccomFloat16; return true;
    case ffi::DataType::F32: *found = ccomFloat32; return true;
    case ffi::DataType::F64: *found = ccomFloat64; return true;
    case ffi::DataType::BF16: *found = ccomBfloat16; return true;
    case ffi::DataType::F8E4M3FN: *found = ccomFloat8e4m3; return true;
    case ffi::DataType::F8E5M2: *found = ccomFloat8e5m2; return true;
    case ffi::DataType::C64: *found = ccomComplex64; return true;
    case ffi::DataType::C128: *found = ccomComplex128; return true;
    default: return false;
  }
}

ffi::ErrorCode code_of(ccomResult_t result) {
  switch (result) {
    case ccomInvalidArgument: return ffi::ErrorCode::kInvalidArgument;
    case ccomInvalidUsage:
    case ccomMismatch:
    case ccomConfigError: return ffi::ErrorCode::kFailedPrecondition;
    case ccomRemoteError:
    case ccomTransportError: return ffi::ErrorCode::kUnavailable;
    case ccomTimeout: return ffi::ErrorCode::kDeadlineExceeded;
    case ccomAborted:
    case ccomRevoked: return ffi::ErrorCode::kAborted;
    case ccomOutOfMemory: return ffi::ErrorCode::kResourceExhausted;
    case ccomNotSupported: return ffi::ErrorCode::kUnimplemented;
    default: return ffi::ErrorCode::kInternal;
  }
}

ffi::Error error_of(ccomResult_t result, ccomComm_t comm) {
  ccomErrorInfo_t info = CCOM_ERROR_INFO_INIT;
  ccomGetErrorInfo(nullptr, &info);
  if (info.result != result) ccomGetErrorInfo(comm, &info);
  const char* const text = ccomGetLastError(comm);
  std::string message = text[0] != '\0' ? text : ccomGetErrorString(result);
  if (info.result != result) {
    info.result = result;
    std::strncpy(info.text, message.c_str(), sizeof info.text - 1);
  }
  keep_error(info);
  return ffi::Error(code_of(result), std::move(message));
}

// Whether there is an array at `index`: tokens come behind them.
template <typename Span>
bool find_buffer(const Span& all, size_t index, Buffer* found, bool* is_known) {
  *is_known = true;
  if (index >= all.size()) return false;
  auto any = all.template get<ffi::AnyBuffer>(index);
  if (!any.has_value()) return false;
  ffi::AnyBuffer* buffer;
  if constexpr (std::is_same_v<Span, ffi::RemainingRets>) {
    buffer = &*any.value();
  } else {
    buffer = &any.value();
  }
  if (buffer->element_type() == ffi::DataType::TOKEN) return false;
  *is_known = find_type(buffer->element_type(), &found->type);
  found->data = buffer->untyped_data();
  found->count = buffer->element_count();
  found->bytes = buffer->size_bytes();
  return true;
}

// Without a call *fits is false: ccom lacks a type, or sizes are wrong.
template <Fn kFn, Sizes kSizes>
ccomResult_t make_call(const Call& call, const ffi::RemainingArgs& args, const ffi::RemainingRets& results, size_t pair,
                       bool* fits) {
  Buffer sent, received;
  bool is_known = true, is_known_too = true;
  const Buffer* const from = find_buffer(args, pair, &sent, &is_known) ? &sent : nullptr;
  const Buffer* const to = find_buffer(results, pair, &received, &is_known_too) ? &received : nullptr;
  *fits = is_known && is_known_too && are_right(kSizes, call, from, to);
  return *fits ? kFn(call, from, to) : ccomInvalidArgument;
}

// One call for each pair of an array and a result, or of one of them alone; without both a single one.
template <Fn kFn, Sizes kSizes>
ccomResult_t make_calls(const Call& call, const ffi::RemainingArgs& args, const ffi::RemainingRets& results,
                        size_t pairs, bool* fits) {
  const bool is_group = pairs > 1;
  ccomResult_t result = is_group ? ccomGroupStart() : ccomSuccess;
  for (size_t i = 0; i < std::max<size_t>(pairs, 1) && result == ccomSuccess; ++i)
    result = make_call<kFn, kSizes>(call, args, results, i, fits);
  if (!is_group) return result;
  const ccomResult_t end = ccomGroupEnd();
  return result != ccomSuccess ? result : end;
}

template <Fn kFn, Sizes kSizes>
ffi::Error run(ffi::RemainingArgs args, ffi::RemainingRets results, int64_t number, int64_t op, int64_t peer,
               int64_t source, int64_t pairs, std::string_view place) {
  const std::shared_ptr<Member> member = member_of(number);
  const std::shared_lock lock(member->in_use);
  if (member->comm == nullptr) {
    return ffi::Error(ffi::ErrorCode::kFailedPrecondition,
                      "ccom: communicator " + std::to_string(number) +
                          " of this compiled function is closed: trace the function again with another one");
  }
  if (!place.empty()) ccomSetCallSite(std::string(place).c_str());
  const Call call{member->comm,           member->rank,
                  member->size,           static_cast<ccomRedOp_t>(op),
                  static_cast<int>(peer), static_cast<int>(source)};
  bool fits = true;
  const ccomResult_t result = make_calls<kFn, kSizes>(call, args, results, static_cast<size_t>(pairs), &fits);
  if (!fits) {
    return ffi::Error(ffi::ErrorCode::kInvalidArgument,
                      "ccom: types or sizes of the arrays and results of this call do not fit a communicator of " +
                          std::to_string(call.size) +
                          " ranks: trace the function again with the communicator that it is to use");
  }
  return result == ccomSuccess ? ffi::Error::Success() : error_of(result, member->comm);
}

template <Fn kFn, Sizes kSizes>
XLA_FFI_Error* handle(XLA_FFI_CallFrame* frame) {
  static const auto* const handler = ffi::Ffi::Bind()
                                         .RemainingArgs()
                                         .RemainingRets()
                                         .Attr<int64_t>("comm")
                                         .Attr<int64_t>("op")
                                         .Attr<int64_t>("peer")
                                         .Attr<int64_t>("source")
                                         .Attr<int64_t>("pairs")
                                         .Attr<std::string_view>("place")
                                         .To(run<kFn, kSizes>)
                                         .release();
  return handler->Call(frame);
}

}  // namespace
}  // namespace ccom_jax

#define CCOM_JAX_HANDLER(name, sizes)                                            \
  extern "C" CCOM_API XLA_FFI_Error* ccom_jax_##name(XLA_FFI_CallFrame* frame) { \
    return ccom_jax::handle<ccom_jax::name, ccom_jax::Sizes::sizes>(frame);      \
  }

CCOM_JAX_HANDLER(all_reduce, Equal)
CCOM_JAX_HANDLER(all_gather, TimesRanks)
CCOM_JAX_HANDLER(reduce_scatter, ByRanks)
CCOM_JAX_HANDLER(all_to_all, Blocks)
CCOM_JAX_HANDLER(broadcast, Equal)
CCOM_JAX_HANDLER(reduce, Equal)
CCOM_JAX_HANDLER(gather, TimesRanksOnRoot)
CCOM_JAX_HANDLER(scatter, ByRanksOnRoot)
CCOM_JAX_HANDLER(exchange, Exchanged)
CCOM_JAX_HANDLER(barrier, None)
