// SPDX-License-Identifier: Apache-2.0
#include "base/status.h"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <system_error>

namespace ccom {

void assertion_failed(const char* expression, const char* file, int line) {
  std::fprintf(stderr, "ccom: %s:%d: assertion failed: %s\nccom: this is a bug in ccom; please report it\n", file, line,
               expression);
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
  }
  return "unknown result code";
}

namespace {

const std::string kEmpty;
const std::vector<int> kNobody;

std::string format_text(const char* format, va_list arguments) {
  va_list copy;
  va_copy(copy, arguments);
  const int length = std::vsnprintf(nullptr, 0, format, copy);
  va_end(copy);
  std::string text(length > 0 ? static_cast<size_t>(length) : 0, '\0');
  if (length > 0) std::vsnprintf(text.data(), text.size() + 1, format, arguments);
  return text;
}

}  // namespace

const std::string& Status::message() const { return detail_ ? detail_->message : kEmpty; }
const std::vector<int>& Status::peers() const { return detail_ ? detail_->peers : kNobody; }
const std::string& Status::host() const { return detail_ ? detail_->host : kEmpty; }
const std::string& Status::cure() const { return detail_ ? detail_->cure : kEmpty; }

// Copies share the detail; a setter makes its own copy first.
Status::Detail& Status::own() {
  CCOM_ASSERT(detail_ != nullptr);
  if (detail_.use_count() > 1) detail_ = std::make_shared<Detail>(*detail_);
  return *detail_;
}

Status Status::with_peers(std::vector<int> peers) && {
  own().peers = std::move(peers);
  return std::move(*this);
}
Status Status::with_host(std::string host) && {
  own().host = std::move(host);
  return std::move(*this);
}
Status Status::with_cure(std::string cure) && {
  own().cure = std::move(cure);
  return std::move(*this);
}
Status Status::with_errno(int sys_errno) && {
  own().sys_errno = sys_errno;
  return std::move(*this);
}
Status Status::in(std::string_view context) && {
  own().message = std::string(context) + ": " + detail_->message;
  return std::move(*this);
}

Status error(Code code, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  std::string text = format_text(format, arguments);
  va_end(arguments);
  return {code, std::move(text)};
}

Status system_error(int number, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  std::string text = format_text(format, arguments);
  va_end(arguments);
  const bool exhausted = number == ENOMEM || number == ENOSPC || number == EMFILE || number == ENFILE;
  return Status(exhausted ? Code::OutOfMemory : Code::SystemError,
                text + ": " + std::generic_category().message(number))
      .with_errno(number);
}

}  // namespace ccom
