// SPDX-License-Identifier: Apache-2.0
#include "base/status.h"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#include "base/log.h"
#include "base/text.h"

namespace ccom {

void assertion_failed(const char* expression, const char* file, int line) {
  char text[1024];
  std::snprintf(text, sizeof text, "%s:%d: assertion failed: %s: this is a bug in ccom; please report it", file, line,
                expression);
  log_last_words({LogLevel::Error, file}, text);
  std::abort();
}

const char* describe(Code code) {
  switch (code) {
    case Code::Ok: return "success";
    case Code::SystemError: return "a system call failed";
    case Code::InternalError: return "internal error: a bug in ccom";
    case Code::InvalidArgument: return "invalid argument";
    case Code::InvalidUsage: return "invalid usage: not allowed in this state";
    case Code::RemoteError: return "a peer has exited or cannot be reached";
    case Code::InProgress: return "in progress";
    case Code::Timeout: return "timed out";
    case Code::Mismatch: return "ranks made different calls";
    case Code::Aborted: return "the communicator was aborted";
    case Code::Revoked: return "the communicator was revoked";
    case Code::OutOfMemory: return "out of memory, file descriptors or disk space";
    case Code::ConfigError: return "a setting is wrong or differs between ranks";
    case Code::TransportError: return "a transport failed";
    case Code::NotSupported: return "not supported here";
    case Code::OperatorError: return "a user-defined operator failed";
  }
  return "unknown result code";
}

Code code_of(ErrorKey key) {
  switch (key) {
#define CCOM_ERROR_KEY(number, name, code) \
  case ErrorKey::name: return Code::code;
    CCOM_ERROR_KEYS(CCOM_ERROR_KEY)
#undef CCOM_ERROR_KEY
  }
  return Code::InternalError;
}

ErrorKey key_of(uint32_t number, Code code) {
  switch (number) {
#define CCOM_ERROR_KEY(number, name, code) case number:
    CCOM_ERROR_KEYS(CCOM_ERROR_KEY)
#undef CCOM_ERROR_KEY
    {
      const ErrorKey key{static_cast<uint16_t>(number)};
      if (code_of(key) == code) return key;
    }
  }
  return general_key(code);
}

ErrorKey general_key(Code code) {
  switch (code) {
    case Code::SystemError: return ErrorKey::SystemCall;
    case Code::InvalidArgument: return ErrorKey::Argument;
    case Code::InvalidUsage: return ErrorKey::Usage;
    case Code::RemoteError: return ErrorKey::PeerGone;
    case Code::InProgress: return ErrorKey::NotFinished;
    case Code::Timeout: return ErrorKey::TooLong;
    case Code::Mismatch: return ErrorKey::DifferentCalls;
    case Code::Aborted: return ErrorKey::CommAborted;
    case Code::Revoked: return ErrorKey::CommRevoked;
    case Code::OutOfMemory: return ErrorKey::NoMemory;
    case Code::ConfigError: return ErrorKey::WrongSetting;
    case Code::TransportError: return ErrorKey::TransportFailed;
    case Code::NotSupported: return ErrorKey::Unsupported;
    case Code::OperatorError: return ErrorKey::OperatorFailed;
    case Code::Ok:
    case Code::InternalError: break;
  }
  return ErrorKey::Internal;
}

std::string name_of(ErrorKey key) {
  char name[16];
  std::snprintf(name, sizeof name, "CCOM-E%03d", static_cast<int>(key));
  return name;
}

namespace {

const std::string kEmpty;
const std::vector<int> kNobody;
const Status kOutOfMemory(Code::OutOfMemory, "out of memory");

// With ": reason" behind the text, unless that is empty.
Status formatted(ErrorKey key, const char* format, va_list arguments, const char* reason) noexcept {
  try {
    std::string text = printed(format, arguments);
    if (*reason != '\0') text.append(": ").append(reason);
    return {key, std::move(text)};
  } catch (const std::bad_alloc&) {
    return out_of_memory();
  }
}

}  // namespace

const std::string& Status::message() const { return detail_ ? detail_->message : kEmpty; }
const std::vector<int>& Status::peers() const { return detail_ ? detail_->peers : kNobody; }
const std::string& Status::host() const { return detail_ ? detail_->host : kEmpty; }
const std::string& Status::cure() const { return detail_ ? detail_->cure : kEmpty; }

ErrorKey Status::key() const {
  CCOM_ASSERT(detail_ != nullptr);
  return detail_->key;
}

std::string Status::text() const {
  if (is_ok()) return {};
  return message() + (cure().empty() ? "" : " (" + cure() + ")") + " [" + name_of(key()) + "]";
}

Status::Status(ErrorKey key, std::string message) noexcept {
  try {
    detail_ = std::make_shared<Detail>(Detail{key, std::move(message)});
  } catch (const std::bad_alloc&) {
    detail_ = kOutOfMemory.detail_;
  }
}

Status out_of_memory() noexcept { return kOutOfMemory; }

// Copies share the detail; a setter makes its own copy first.
Status::Detail* Status::own() noexcept {
  CCOM_ASSERT(detail_ != nullptr);
  if (detail_.use_count() == 1) return detail_.get();
  try {
    detail_ = std::make_shared<Detail>(*detail_);
    return detail_.get();
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

Status Status::with_peers(std::vector<int> peers) && noexcept {
  if (Detail* const detail = own()) detail->peers = std::move(peers);
  return std::move(*this);
}
Status Status::with_host(std::string host) && noexcept {
  if (Detail* const detail = own()) detail->host = std::move(host);
  return std::move(*this);
}
Status Status::with_cure(std::string cure) && noexcept {
  if (Detail* const detail = own()) detail->cure = std::move(cure);
  return std::move(*this);
}
Status Status::with_errno(int sys_errno) && noexcept {
  if (Detail* const detail = own()) detail->sys_errno = sys_errno;
  return std::move(*this);
}
Status Status::with_key(ErrorKey key) && noexcept {
  if (code_of(key) != code()) return std::move(*this);
  if (Detail* const detail = own()) detail->key = key;
  return std::move(*this);
}
Status Status::in(std::string_view context) && noexcept {
  try {
    std::string message = std::string(context) + ": " + detail_->message;
    if (Detail* const detail = own()) detail->message = std::move(message);
  } catch (const std::bad_alloc&) {  // without the context, then
  }
  return std::move(*this);
}

Status error(Code code, const char* format, ...) noexcept {
  va_list arguments;
  va_start(arguments, format);
  Status status = formatted(general_key(code), format, arguments, "");
  va_end(arguments);
  return status;
}

Status error(ErrorKey key, const char* format, ...) noexcept {
  va_list arguments;
  va_start(arguments, format);
  Status status = formatted(key, format, arguments, "");
  va_end(arguments);
  return status;
}

Status system_error(int number, const char* format, ...) noexcept {
  va_list arguments;
  va_start(arguments, format);
  const bool exhausted = number == ENOMEM || number == ENOSPC || number == EMFILE || number == ENFILE;
  char reason[256];
  Status status = formatted(exhausted ? ErrorKey::NoMemory : ErrorKey::SystemCall, format, arguments,
                            ::strerror_r(number, reason, sizeof reason));
  va_end(arguments);
  return std::move(status).with_errno(number);
}

}  // namespace ccom
