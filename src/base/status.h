// SPDX-License-Identifier: Apache-2.0
//
// Status and Result<T>: error reporting of the whole library.
//
// The codes equal ccomResult_t (src/api asserts it). A message says what was attempted, with whom, and the system's
// reason: "connect rank 3 -> 7 at 10.0.0.7:4100: connection refused". "Try again" is an ordinary result, never a
// Status.
#pragma once

#include <cerrno>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "base/error_key.h"

namespace ccom {

enum class Code : int {
  Ok = 0,
  SystemError = 2,
  InternalError = 3,
  InvalidArgument = 4,
  InvalidUsage = 5,
  RemoteError = 6,
  InProgress = 7,
  Timeout = 8,
  Mismatch = 32,
  Aborted = 33,
  Revoked = 34,
  OutOfMemory = 35,
  ConfigError = 36,
  TransportError = 37,
  NotSupported = 38,
  OperatorError = 39,
};

// A static description of each code.
const char* describe(Code code);
// "CCOM-E025"
std::string name_of(ErrorKey key);

// A value; Ok costs one null pointer. The with_* setters are for the builder; otherwise immutable.
class [[nodiscard]] Status {
 public:
  Status() = default;
  // out_of_memory() if there is no memory for the text; that holds for all that follows here.
  Status(Code code, std::string message) noexcept : Status(general_key(code), std::move(message)) {}
  Status(ErrorKey key, std::string message) noexcept;  // with the code of the key

  static Status ok() { return {}; }

  bool is_ok() const { return detail_ == nullptr; }
  Code code() const { return detail_ ? code_of(detail_->key) : Code::Ok; }
  ErrorKey key() const;  // of an error
  const std::string& message() const;
  // Ranks blamed for this error, ascending; empty if unknown.
  const std::vector<int>& peers() const;
  // The host of the first of them.
  const std::string& host() const;
  // What the user can do.
  const std::string& cure() const;
  int sys_errno() const { return detail_ ? detail_->sys_errno : 0; }
  // For users: "message (cure) [CCOM-E025]"; empty if ok.
  std::string text() const;

  Status with_peers(std::vector<int> peers) && noexcept;
  Status with_host(std::string host) && noexcept;
  Status with_cure(std::string cure) && noexcept;
  Status with_errno(int sys_errno) && noexcept;
  Status with_key(ErrorKey key) && noexcept;  // unless that is of another code
  // The same error with "context: " before its message.
  Status in(std::string_view context) && noexcept;

 private:
  struct Detail {
    ErrorKey key;
    std::string message;
    std::vector<int> peers{};
    std::string host{};
    std::string cure{};
    int sys_errno = 0;
  };
  // The detail for itself alone; null if there is no memory for that.
  Detail* own() noexcept;
  std::shared_ptr<Detail> detail_;
};

// An OutOfMemory that is allocated when the library is loaded: for handlers of bad_alloc.
Status out_of_memory() noexcept;

// printf-style builder: error(Code::SystemError, "open %s: %s", path, ...).
[[gnu::format(printf, 2, 3)]] Status error(Code code, const char* format, ...) noexcept;
[[gnu::format(printf, 2, 3)]] Status error(ErrorKey key, const char* format, ...) noexcept;
// A SystemError (OutOfMemory for ENOMEM, ENOSPC, EMFILE, ENFILE) that ends in ": <strerror(number)>".
[[gnu::format(printf, 2, 3)]] Status system_error(int number, const char* format, ...) noexcept;

// A T, or the Status that explains its absence. Member names match std::expected, which can replace it in C++23.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}         // NOLINT(google-explicit-constructor)
  Result(Status status) : status_(std::move(status)) {  // NOLINT(google-explicit-constructor)
    CCOM_ASSERT(!status_.is_ok());
  }
  bool has_value() const { return value_.has_value(); }
  explicit operator bool() const { return has_value(); }
  T& value() & { return *value_; }
  const T& value() const& { return *value_; }
  T&& value() && { return *std::move(value_); }
  T& operator*() & { return *value_; }
  const T& operator*() const& { return *value_; }
  T&& operator*() && { return *std::move(value_); }
  T* operator->() { return &*value_; }
  const T* operator->() const { return &*value_; }
  const Status& error() const& { return status_; }
  Status&& error() && { return std::move(status_); }

 private:
  std::optional<T> value_;
  Status status_;
};

}  // namespace ccom

// Returns from the enclosing function if the Status expression is an error.
#define CCOM_TRY(expression)                                                                             \
  do {                                                                                                   \
    if (::ccom::Status ccom_try_status = (expression); !ccom_try_status.is_ok()) return ccom_try_status; \
  } while (false)

#define CCOM_CONCAT_2(a, b) a##b
#define CCOM_CONCAT(a, b) CCOM_CONCAT_2(a, b)
// CCOM_TRY_ASSIGN(auto x, make_x()): declares x from a Result, or returns its error.
#define CCOM_TRY_ASSIGN(declaration, expression)                       \
  auto CCOM_CONCAT(ccom_try_result_, __LINE__) = (expression);         \
  if (!CCOM_CONCAT(ccom_try_result_, __LINE__).has_value())            \
    return std::move(CCOM_CONCAT(ccom_try_result_, __LINE__)).error(); \
  /* NOLINTNEXTLINE(bugprone-macro-parentheses): it declares. */       \
  declaration = *std::move(CCOM_CONCAT(ccom_try_result_, __LINE__))
