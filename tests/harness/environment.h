// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/resource.h>

#include <cerrno>
#include <cstdlib>
#include <optional>
#include <string>
#include <system_error>

namespace ccom {

// Sets or, with nullptr, unsets a variable until the end of the scope.
class ScopedVariable {
 public:
  ScopedVariable(std::string name, const char* value) : name_(std::move(name)) {
    if (const char* const old = std::getenv(name_.c_str())) old_ = old;
    set(value);
  }
  ~ScopedVariable() { set(old_ ? old_->c_str() : nullptr); }
  ScopedVariable(const ScopedVariable&) = delete;
  ScopedVariable& operator=(const ScopedVariable&) = delete;
  void set(const char* value) const {
    if (value == nullptr) {
      ::unsetenv(name_.c_str());
    } else {
      ::setenv(name_.c_str(), value, 1);
    }
  }

 private:
  const std::string name_;
  std::optional<std::string> old_;
};

// A limit of this process while this lives.
class ScopedLimit {
 public:
  ScopedLimit(decltype(RLIMIT_NOFILE) kind, rlim_t most) : kind_(kind) {
    if (::getrlimit(kind_, &before_) != 0) throw std::system_error(errno, std::generic_category(), "getrlimit");
    const rlimit limited{.rlim_cur = most, .rlim_max = before_.rlim_max};
    if (::setrlimit(kind_, &limited) != 0) throw std::system_error(errno, std::generic_category(), "setrlimit");
  }
  ~ScopedLimit() { ::setrlimit(kind_, &before_); }
  ScopedLimit(const ScopedLimit&) = delete;
  ScopedLimit& operator=(const ScopedLimit&) = delete;

 private:
  const decltype(RLIMIT_NOFILE) kind_;
  rlimit before_{};
};

}  // namespace ccom
