// SPDX-License-Identifier: Apache-2.0
//
// Forked children of a test. They end with it, and after a minute unless they have more time.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <type_traits>

// GCC 12's AddressSanitizer: a child finds a lock of its allocator held where another thread allocated at the fork.
#if defined(__SANITIZE_ADDRESS__)
#define SKIP_WHERE_ALLOCATORS_DO_NOT_FORK() \
  GTEST_SKIP() << "AddressSanitizer's allocator does not bear fork() beside threads"
#else
#define SKIP_WHERE_ALLOCATORS_DO_NOT_FORK() (void)0
#endif

namespace ccom {

// One end of a pair between two processes. A packet of at most 4 KiB arrives whole; "" when the other process has
// ended.
class PacketSocket {
 public:
  explicit PacketSocket(int fd = -1) : fd_(fd) {}
  void send(const std::string& text) const;
  std::string receive() const;
  template <typename T>
  void send_value(const T& value) const {
    static_assert(std::is_trivially_copyable_v<T>);
    send({reinterpret_cast<const char*>(&value), sizeof value});
  }
  template <typename T>
  T receive_value() const {
    T value{};
    const std::string text = receive();
    text.copy(reinterpret_cast<char*>(&value), sizeof value);
    return value;
  }

 protected:
  int fd_;
};

class Child : public PacketSocket {
 public:
  // `body` returns the exit code.
  explicit Child(const std::function<int()>& body, unsigned most_seconds = 60);
  // The same with a socket to this process.
  explicit Child(const std::function<int(const PacketSocket& parent)>& body, unsigned most_seconds = 60);
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  pid_t pid() const { return pid_; }
  void signal(int number) const;
  // Returns when it has ended.
  void kill();
  // Its exit code; 128 and the signal that has ended it.
  int wait();

 private:
  pid_t pid_ = -1;
};

// What Child(body).wait() returns.
int exit_of(const std::function<int()>& body, unsigned most_seconds = 60);
bool holds_in_child(const std::function<bool()>& body, unsigned most_seconds = 60);

}  // namespace ccom
