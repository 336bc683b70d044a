// SPDX-License-Identifier: Apache-2.0
//
// Streams and events.
#include "api/handles.h"
#include "base/options.h"

namespace ccom {
namespace {

std::optional<Deadline> deadline_of(int64_t timeout_ms) {
  return timeout_ms < 0 ? std::nullopt : std::optional(Deadline::after_ms(timeout_ms));
}

Status check(const void* handle, const char* name) {
  return handle == nullptr ? error(Code::InvalidArgument, "%s is NULL", name) : Status();
}

template <typename Handle>
Status check_own(Handle handle, const char* name) {
  CCOM_TRY(check(handle, name));
  if (handle->generation == fork_generation()) return {};
  return error(ErrorKey::Forked, "the %s was created before fork() and belongs to the parent process", name);
}

Status check_stream(ccomStream_t stream) { return check_own(stream, "stream"); }
Status check_event(ccomEvent_t event) { return check_own(event, "event"); }

// The callback would wait for its own return.
Status check_no_callback(ccomStream_t stream) {
  if (!stream->stream.is_called_by_work()) return {};
  return error(Code::InvalidUsage, "a callback cannot wait for its own stream")
      .with_cure("do it in another thread, after the callback has returned");
}

}  // namespace
}  // namespace ccom

using namespace ccom;  // NOLINT(google-build-using-namespace): the C functions below are its border

ccomResult_t ccomStreamCreate(ccomStream_t* stream) {
  return guarded("ccomStreamCreate", [&]() -> Status {
    CCOM_TRY(check(stream, "stream"));
    *stream = new ccomStream;
    return {};
  });
}

ccomResult_t ccomStreamDestroy(ccomStream_t stream) {
  return guarded("ccomStreamDestroy", [&]() -> Status {
    if (stream == nullptr) return {};
    CCOM_TRY(check_stream(stream));  // left alone in a forked child, where it has no thread
    CCOM_TRY(check_no_calls_in_group(nullptr, stream));
    CCOM_TRY(check_no_callback(stream));
    Status status = stream->stream.synchronize(std::nullopt);
    delete stream;
    return status;
  });
}

ccomResult_t ccomStreamQuery(ccomStream_t stream) {
  return queried("ccomStreamQuery", [&]() -> Status {
    CCOM_TRY(check_stream(stream));
    return stream->stream.query();
  });
}

ccomResult_t ccomStreamSynchronize(ccomStream_t stream, int64_t timeoutMs) {
  return guarded("ccomStreamSynchronize", [&]() -> Status {
    if (stream == nullptr) return {};
    CCOM_TRY(check_stream(stream));
    CCOM_TRY(check_no_callback(stream));
    return stream->stream.synchronize(deadline_of(timeoutMs));
  });
}

ccomResult_t ccomStreamRunNext(ccomStream_t stream, int* ran) {
  return guarded("ccomStreamRunNext", [&]() -> Status {
    CCOM_TRY(check_stream(stream));
    CCOM_TRY(check(ran, "ran"));
    *ran = stream->stream.run_next() ? 1 : 0;
    return {};
  });
}

ccomResult_t ccomStreamWaitEvent(ccomStream_t stream, ccomEvent_t event) {
  return guarded("ccomStreamWaitEvent", [&]() -> Status {
    CCOM_TRY(check_stream(stream));
    CCOM_TRY(check_event(event));
    CCOM_TRY_ASSIGN(const int64_t at_most_ms, integer_option("CCOM_TIMEOUT_MS", 1, Deadline::kMostMs));
    stream->stream.wait_for(event->event, std::chrono::milliseconds(at_most_ms));
    return {};
  });
}

ccomResult_t ccomStreamAddCallback(ccomStream_t stream, void (*fn)(void*, ccomResult_t), void* user) {
  return guarded("ccomStreamAddCallback", [&]() -> Status {
    CCOM_TRY(check_stream(stream));
    if (fn == nullptr) return error(Code::InvalidArgument, "fn is NULL");
    stream->stream.enqueue_callback(
        [fn, user](const Status& state) { fn(user, static_cast<ccomResult_t>(state.code())); });
    return {};
  });
}

ccomResult_t ccomEventCreate(ccomEvent_t* event) {
  return guarded("ccomEventCreate", [&]() -> Status {
    CCOM_TRY(check(event, "event"));
    *event = new ccomEvent;
    return {};
  });
}

ccomResult_t ccomEventDestroy(ccomEvent_t event) {
  delete event;
  return ccomSuccess;
}

ccomResult_t ccomEventRecord(ccomEvent_t event, ccomStream_t stream) {
  return guarded("ccomEventRecord", [&]() -> Status {
    CCOM_TRY(check_event(event));
    if (stream == nullptr) {
      event->event.record(nullptr);
    } else {
      CCOM_TRY(check_stream(stream));
      stream->stream.record(event->event);
    }
    return {};
  });
}

ccomResult_t ccomEventQuery(ccomEvent_t event) {
  return queried("ccomEventQuery", [&]() -> Status {
    CCOM_TRY(check_event(event));
    const std::shared_ptr<Milestone> milestone = event->event.recorded();
    if (milestone == nullptr) return {};
    return milestone->poll().value_or(error(Code::InProgress, "the event is not complete yet"));
  });
}

ccomResult_t ccomEventSynchronize(ccomEvent_t event, int64_t timeoutMs) {
  return guarded("ccomEventSynchronize", [&]() -> Status {
    CCOM_TRY(check_event(event));
    const std::shared_ptr<Milestone> milestone = event->event.recorded();
    if (milestone == nullptr) return {};
    Status status = milestone->wait(deadline_of(timeoutMs));
    if (status.code() == Code::InProgress)
      return error(Code::Timeout, "the event is not complete after %lld ms", static_cast<long long>(timeoutMs));
    return status;
  });
}
