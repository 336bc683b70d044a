// SPDX-License-Identifier: Apache-2.0
//
// What is reported of a peer that has gone: killed (a process of its own), or closed in good order.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "tests/transport_ofi/ofi_job.h"
#include "transports/ofi/fabric.h"

namespace ccom::ofi {
namespace {

// Tells the process at the other end of `socket` our address and returns its.
std::string swap_addresses(int socket, const std::string& mine) {
  char buffer[1024];
  if (write(socket, mine.data(), mine.size()) != static_cast<ssize_t>(mine.size())) return {};
  const ssize_t size = read(socket, buffer, sizeof(buffer));
  return {buffer, static_cast<size_t>(std::max<ssize_t>(size, 0))};
}

std::unique_ptr<Transport> join(Rank rank, int socket, const Secret& key) {
  auto made = make_ofi_transport({.rank = rank, .communicator = 1, .key = key, .bind_address = "127.0.0.1"});
  if (!made) return nullptr;
  const Peer peer{1 - rank, swap_addresses(socket, (*made)->address()), 1};
  const Status status = (*made)->connect(std::span(&peer, 1), Deadline::after(kPatience));
  return status.is_ok() ? *std::move(made) : nullptr;
}

// A process of its own that is rank 1 and never does anything again.
class Victim {
 public:
  Victim(const Secret& key, int sockets[2]) : pid_(fork()) {
    if (pid_ != 0) return;
    const auto transport = join(1, sockets[1], key);
    if (transport == nullptr) _exit(1);
    for (;;) pause();
  }
  ~Victim() { die(); }
  void die() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(std::exchange(pid_, -1), nullptr, 0);
  }

 private:
  pid_t pid_;
};

TEST(OfiDeadPeer, SendingToAKilledProcessIsARemoteErrorThatNamesIt) {
  int sockets[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sockets), 0);
  const Secret key = Secret::random();
  Victim victim(key, sockets);
  const auto transport = join(0, sockets[0], key);
  ASSERT_NE(transport, nullptr);
  victim.die();
  const auto sent = pattern(100, 1);
  Channel& channel = **transport->channel(1, 0);
  Events events;
  Status status;
  const Deadline deadline = Deadline::after(std::chrono::seconds(10));
  for (Token token = 0; status.is_ok() && !deadline.passed(); ++token) {
    if (token < 20) status = channel.post_send({{}, sent, token});
    if (status.is_ok()) status = transport->progress(events);
    transport->wait(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(status.code(), Code::RemoteError) << status.message();
  EXPECT_EQ(status.peers(), std::vector<int>{1});
  Events nothing;
  EXPECT_FALSE(transport->progress(nothing).is_ok()) << "errors are final";
  EXPECT_FALSE(channel.post_send({{}, sent, 1}).is_ok());
  close(sockets[0]);
  close(sockets[1]);
}

TEST(OfiDeadPeer, BusinessWithAPeerThatHasClosedIsARemoteErrorThatNamesIt) {
  for (const bool is_send : {true, false}) {
    OfiJob job({.ranks = 3});
    ASSERT_TRUE(job.connect_all());
    std::thread leaver([&job] { job.destroy(1); });
    const auto bytes = pattern(100, 1);
    std::vector<std::byte> received(100);
    Channel& channel = job.channel(0, 1);
    ASSERT_TRUE((is_send ? channel.post_send({{}, bytes, 1})
                         : channel.post_receive({{}, received.size(), received.data(), nullptr, 1}))
                    .is_ok());
    Events events;
    Status status;
    for (const Deadline deadline = Deadline::after(kPatience); status.is_ok() && !deadline.passed();) {
      if (is_send) (void)channel.post_send({{}, bytes, 1});
      status = job[0].progress(events);
    }
    leaver.join();
    EXPECT_EQ(status.code(), Code::RemoteError) << status.message();
    EXPECT_EQ(status.peers(), std::vector<int>{1});
  }
}

}  // namespace
}  // namespace ccom::ofi
