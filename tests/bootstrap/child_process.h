// SPDX-License-Identifier: Apache-2.0
//
// A process that does something when it is asked to, and can be killed. All are forked before this process uses gRPC.
#pragma once

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <functional>

#include "base/descriptor.h"

namespace ccom::testing {

class Child {
 public:
  // `body` gets two ends of pipes: what it reads from, and what it writes to.
  using Body = std::function<void(int down, int up)>;
  explicit Child(const Body& body) {
    int down[2], up[2];
    if (::pipe(down) != 0 || ::pipe(up) != 0) std::abort();
    process_ = ::fork();
    if (process_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::close(down[1]);
      char go;
      if (::read(down[0], &go, 1) == 1) body(down[0], up[1]);
      ::_exit(0);
    }
    ::close(down[0]);
    ::close(up[1]);
    to_ = Descriptor(down[1]);
    from_ = Descriptor(up[0]);
  }
  ~Child() { kill(); }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  void start() const { tell('!'); }
  void kill() {
    if (process_ <= 0) return;
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
    process_ = -1;
  }
  template <typename T>
  void tell(const T& value) const {
    EXPECT_EQ(::write(to_.get(), &value, sizeof value), static_cast<ssize_t>(sizeof value));
  }
  template <typename T>
  T hear() const {
    T value{};
    EXPECT_EQ(::read(from_.get(), &value, sizeof value), static_cast<ssize_t>(sizeof value));
    return value;
  }

 private:
  pid_t process_ = -1;
  Descriptor to_, from_;
};

}  // namespace ccom::testing
