// SPDX-License-Identifier: Apache-2.0
#include "base/peer_user.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>

#include "base/descriptor.h"
#include "tests/harness/child.h"
#include "tests/harness/folder.h"

namespace ccom {
namespace {

sockaddr_un address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
  return address;
}

// A socket that everybody may connect to, and what it says of a client who is that user.
bool accepts(uid_t user) {
  const TemporaryFolder folder;
  ::chmod(folder.path().c_str(), 0777);
  const std::string path = folder / "socket";
  const sockaddr_un address = address_of(path);
  const Descriptor listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_EQ(::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  EXPECT_EQ(::listen(listener.get(), 1), 0);
  EXPECT_EQ(::chmod(path.c_str(), 0777), 0);
  Child client(
      [&](const PacketSocket& test) {
        const Descriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
        if (user != ::geteuid() && ::setresuid(user, user, user) != 0) return 1;
        if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) return 2;
        return test.receive() == "end" ? 0 : 3;
      },
      30);
  const Descriptor socket(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  const bool is_accepted = is_of_this_user(socket.get());
  client.send("end");
  EXPECT_EQ(client.wait(), 0);
  return is_accepted;
}

TEST(PeerUser, OnlyThisUserIsAccepted) {
  EXPECT_TRUE(accepts(::geteuid()));
  if (::geteuid() != 0) GTEST_SKIP() << "needs root: to be another user";
  EXPECT_FALSE(accepts(64321));
}

TEST(PeerUser, WhatIsNoSocketIsNotAccepted) { EXPECT_FALSE(is_of_this_user(-1)); }

}  // namespace
}  // namespace ccom
