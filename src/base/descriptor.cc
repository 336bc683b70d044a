// SPDX-License-Identifier: Apache-2.0
#include "base/descriptor.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "base/descriptor_limit.h"
#include "base/mutex.h"

namespace ccom {
namespace {

constexpr int kMost = 1 << 20;  // the kernel's default for fs.nr_open; those above are shared with children
constexpr int kBits = 64;

// Which numbers are owned by a Descriptor. Of no destructor: objects with descriptors may outlive static ones.
struct Owned {
  Mutex mutex;  // nobody takes another one meanwhile
  std::array<uint64_t, kMost / kBits> bits CCOM_GUARDED_BY(mutex){};
  int end CCOM_GUARDED_BY(mutex) = 0;  // no greater number was ever owned

  void set(int fd, bool is_owned) CCOM_REQUIRES(mutex) {
    if (fd < 0 || fd >= kMost) return;
    const uint64_t bit = uint64_t{1} << (fd % kBits);
    uint64_t& word = bits[static_cast<size_t>(fd / kBits)];
    word = is_owned ? word | bit : word & ~bit;
    if (is_owned) end = std::max(end, fd + 1);
  }
  bool has(int fd) const CCOM_REQUIRES(mutex) {
    return (bits[static_cast<size_t>(fd / kBits)] >> (fd % kBits) & 1) != 0;
  }
};

constinit Owned owned;

// Fails at once, whatever is done with it. In the place of `fd`, because there may be no number left.
bool make_useless(int fd) {
  ::close(fd);
  const int made = ::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (made < 0 || made == fd) return made == fd;
  const bool is_moved = ::dup3(made, fd, O_CLOEXEC) == fd;
  ::close(made);
  return is_moved;
}

// The lock that one of them takes another one gives back, which clang cannot follow.
void lock_for_fork() CCOM_NO_THREAD_SAFETY_ANALYSIS { owned.mutex.lock(); }
void unlock_in_parent() CCOM_NO_THREAD_SAFETY_ANALYSIS { owned.mutex.unlock(); }

// Only system calls: other threads may have held any lock of the process at the fork, malloc's too. They leave errno to
// the one who called fork().
void replace_in_child() CCOM_NO_THREAD_SAFETY_ANALYSIS {
  const int before = errno;
  int useless = -1;
  for (int fd = 0; fd < owned.end; ++fd) {
    if (!owned.has(fd)) continue;
    if (useless >= 0) {
      ::dup3(useless, fd, O_CLOEXEC);
    } else if (make_useless(fd)) {
      useless = fd;
    }
  }
  owned.mutex.unlock();
  errno = before;
}

constinit bool waits_at_forks = false;
const int registered_for_forks = (Descriptor::wait_at_forks(), 0);

}  // namespace

void Descriptor::wait_at_forks() {
  if (!std::exchange(waits_at_forks, true)) ::pthread_atfork(lock_for_fork, unlock_in_parent, replace_in_child);
}

Descriptor::NoFork::NoFork() CCOM_NO_THREAD_SAFETY_ANALYSIS { owned.mutex.lock(); }
Descriptor::NoFork::~NoFork() CCOM_NO_THREAD_SAFETY_ANALYSIS {
  const int before = errno;  // of the system call
  owned.mutex.unlock();
  errno = before;
}

void Descriptor::own(int fd) CCOM_NO_THREAD_SAFETY_ANALYSIS {
  fd_ = fd;
  owned.set(fd, true);
}

Descriptor::Descriptor(int fd) {
  if (fd < 0) return;
  const NoFork no_fork;
  own(fd);
}

Descriptor::~Descriptor() {
  if (fd_ < 0) return;
  const Lock lock(owned.mutex);
  owned.set(fd_, false);
  ::close(fd_);
}

int greatest_descriptor() {
  const Lock lock(owned.mutex);
  return owned.end - 1;
}

int Descriptor::release() {
  if (fd_ < 0) return -1;
  const Lock lock(owned.mutex);
  owned.set(fd_, false);
  return std::exchange(fd_, -1);
}

}  // namespace ccom
