// SPDX-License-Identifier: Apache-2.0
//
// Owns a file descriptor. Move-only.
//
// It is not shared with forked children: before fork() returns there, their copy becomes one that is of no use. What
// the end of this process, or a close, tells others - the peer of a connection, who waits for a lock - must not wait
// for the end of children that live on. Numbers stay valid, so that a child's destructors close nothing else.
#pragma once

#include <utility>

namespace ccom {

class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd);
  // What `open`, a system call, returns: no fork comes between, after which a child would keep it.
  template <typename Open>
  static Descriptor from(Open open);
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor();

  int get() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }
  // Forked children share it from now on.
  int release();
  // Registers what fork() calls, when the library is loaded. For those who hold locks at forks under which they open
  // and close descriptors: they call it before they register theirs, which run before it then.
  static void wait_at_forks();

 private:
  // Keeps forks waiting. Only system calls meanwhile.
  class NoFork {
   public:
    NoFork();
    ~NoFork();
    NoFork(const NoFork&) = delete;
    NoFork& operator=(const NoFork&) = delete;
  };
  void own(int fd);  // without a fork meanwhile

  int fd_ = -1;
};

template <typename Open>
Descriptor Descriptor::from(Open open) {
  Descriptor opened;
  const NoFork no_fork;
  opened.own(open());
  return opened;
}

}  // namespace ccom
