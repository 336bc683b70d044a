// SPDX-License-Identifier: Apache-2.0
//
// A forked child does not share what a Descriptor owns: peers hear of the parent's end while the child lives, numbers
// stay valid, and no fork comes between opening and owning.
#include "base/descriptor.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <thread>
#include <vector>

#include "tests/harness/child.h"
#include "tests/harness/waiting.h"

namespace ccom {
namespace {

struct Pair {
  Descriptor ours;
  int peer = -1;
  Pair() {
    std::array<int, 2> ends{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
    ours = Descriptor(ends[0]);
    peer = ends[1];
  }
  ~Pair() { ::close(peer); }
  Pair(const Pair&) = delete;
  Pair& operator=(const Pair&) = delete;

  bool has_ended() const {
    pollfd entry{.fd = peer, .events = POLLIN, .revents = 0};
    return ::poll(&entry, 1, 0) == 1 && (entry.revents & POLLHUP) != 0;
  }
};

// The child may still be in fork(): poll until it has replaced its copy.
bool ends_soon(const Pair& pair) {
  return wait_until([&pair] { return pair.has_ended(); });
}

TEST(DescriptorAtFork, ThePeerHearsOfACloseWhileAForkedChildLives) {
  Pair first, second;
  const Child child(::pause);
  EXPECT_FALSE(first.has_ended());
  first.ours = Descriptor();
  EXPECT_TRUE(ends_soon(first));
  EXPECT_FALSE(second.has_ended());
  second.ours = Descriptor();
  EXPECT_TRUE(ends_soon(second));
}

TEST(DescriptorAtFork, NumbersStayValidInTheChildAndFailAtOnce) {
  const Pair first, second;
  const int fd = first.ours.get(), other = second.ours.get();
  errno = E2BIG;
  EXPECT_EQ(exit_of([&] {
              char byte = 0;
              if (errno != E2BIG) return 1;
              if ((::fcntl(fd, F_GETFD) & FD_CLOEXEC) == 0 || (::fcntl(other, F_GETFD) & FD_CLOEXEC) == 0) return 2;
              if (::recv(fd, &byte, 1, 0) >= 0 || ::send(other, &byte, 1, MSG_NOSIGNAL) >= 0) return 3;
              return 0;
            }),
            0);
  EXPECT_FALSE(first.has_ended() || second.has_ended());
}

TEST(DescriptorAtFork, TheChildNeedsNoFurtherDescriptor) {
  const Pair pair;
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit few{static_cast<rlim_t>(pair.peer) + 1, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  std::vector<int> taken;
  for (int fd = ::dup(0); fd >= 0; fd = ::dup(0)) taken.push_back(fd);
  const int outcome = exit_of([&] {
    char byte = 0;
    return ::fcntl(pair.ours.get(), F_GETFD) >= 0 && ::recv(pair.ours.get(), &byte, 1, MSG_DONTWAIT) < 0 &&
                   errno != EAGAIN
               ? 0
               : 1;
  });
  for (const int fd : taken) ::close(fd);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(outcome, 0);
}

TEST(DescriptorAtFork, WhatIsReleasedIsShared) {
  Pair pair;
  const int fd = pair.ours.release();
  EXPECT_EQ(exit_of([&] { return ::write(fd, "x", 1) == 1 ? 0 : 1; }), 0);
  ::close(fd);
}

// A child that shares a socket of the other thread's would see one of that family.
TEST(DescriptorAtFork, NoForkComesBetweenOpeningAndOwning) {
  std::atomic<bool> is_over{false};
  std::thread opens([&] {
    while (!is_over) {
      const auto one = Descriptor::from([] { return ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0); });
    }
  });
  int shared = 0;
  for (int i = 0; i < 300; ++i) {
    shared += exit_of([] {
      for (int fd = 3; fd < 64; ++fd) {
        int family = 0;
        socklen_t length = sizeof family;
        if (::getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &length) == 0 && family == AF_INET) return 1;
      }
      return 0;
    });
  }
  is_over = true;
  opens.join();
  EXPECT_EQ(shared, 0);
}

}  // namespace
}  // namespace ccom
