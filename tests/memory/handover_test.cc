// SPDX-License-Identifier: Apache-2.0
//
// The hand-over of a segment: clients are threads, strangers are sockets that do not know the key. Shown: everybody who
// knows the key gets the same memory, nobody else gets anything, nobody holds the others up, nothing stays behind.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <thread>
#include <vector>

#include "base/descriptor.h"
#include "memory/shared_segment.h"

namespace ccom {
namespace {

constexpr size_t kBytes = size_t{1} << 20;
constexpr auto kPatience = std::chrono::seconds(30);

Descriptor connect_to(const std::string& path) {
  Descriptor socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  EXPECT_EQ(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  return socket;
}

void send_with_descriptor(const Descriptor& socket, ConstBytes packet, int fd) {
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  iovec part{const_cast<std::byte*>(packet.data()), packet.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(header), &fd, sizeof(int));
  EXPECT_EQ(::sendmsg(socket.get(), &message, 0), static_cast<ssize_t>(packet.size()));
}

std::string folder_of(const std::string& path) { return std::filesystem::path(path).parent_path(); }

class HandOver : public testing::Test {
 protected:
  HandOver()
      : key_(Secret::random()),
        segment_(*SharedSegment::create(kBytes, kBytes)),
        server_(*SegmentServer::create(key_)) {}
  const Secret key_;
  std::unique_ptr<SharedSegment> segment_;
  std::unique_ptr<SegmentServer> server_;
};

TEST_F(HandOver, GivesEveryClientTheSameMemoryAndLeavesNoFile) {
  constexpr int kClients = 7;
  const std::string path = server_->path();
  segment_->bytes()[0] = std::byte{17};
  std::vector<std::thread> clients;
  for (int i = 1; i <= kClients; ++i) {
    clients.emplace_back([this, &path, i] {
      auto mine = fetch_segment(path, kBytes, key_, Deadline::after(kPatience));
      ASSERT_TRUE(mine) << mine.error().message();
      EXPECT_EQ((*mine)->bytes()[0], std::byte{17});
      (*mine)->bytes()[static_cast<size_t>(i)] = static_cast<std::byte>(i);
    });
  }
  const Status status = server_->serve(*segment_, kClients, Deadline::after(kPatience));
  EXPECT_TRUE(status.is_ok()) << status.message();
  EXPECT_FALSE(std::filesystem::exists(folder_of(path)));
  for (std::thread& client : clients) client.join();
  for (int i = 1; i <= kClients; ++i) EXPECT_EQ(segment_->bytes()[static_cast<size_t>(i)], static_cast<std::byte>(i));
}

TEST_F(HandOver, ListensWhereOnlyThisUserCanEnter) {
  struct stat info {};
  ASSERT_EQ(::stat(folder_of(server_->path()).c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700u);
  EXPECT_EQ(info.st_uid, ::geteuid());
}

TEST_F(HandOver, RefusesAClientWithAnotherKey) {
  Status refused;
  std::thread intruder([this, &refused] {
    refused = fetch_segment(server_->path(), kBytes, Secret::random(), Deadline::after(kPatience)).error();
  });
  const Status served = server_->serve(*segment_, 1, Deadline::after_ms(500));
  intruder.join();
  EXPECT_EQ(refused.code(), Code::RemoteError) << refused.message();
  EXPECT_EQ(served.code(), Code::Timeout);
  EXPECT_NE(served.message().find("0 of 1"), std::string::npos) << served.message();
}

TEST_F(HandOver, AClientRefusesALeaderWithAnotherKey) {
  // A leader that accepts anybody, and hands over a descriptor of its own.
  const std::string folder = folder_of(server_->path());
  const std::string path = folder + "/false";
  Descriptor listener(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  ASSERT_EQ(::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  ASSERT_EQ(::listen(listener.get(), 1), 0);
  Status refused;
  std::thread client(
      [this, &path, &refused] { refused = fetch_segment(path, kBytes, key_, Deadline::after(kPatience)).error(); });
  {
    // Relays the true leader's greeting, so that the client gets as far as its answer; then claims to be satisfied.
    const Descriptor victim(::accept(listener.get(), nullptr, nullptr));
    const Descriptor leader = connect_to(server_->path());
    (void)server_->serve(*segment_, 1, Deadline::after_ms(50));
    std::array<std::byte, 256> packet{};
    const ssize_t length = ::recv(leader.get(), packet.data(), packet.size(), 0);
    ASSERT_GT(length, 8);
    EXPECT_EQ(::send(victim.get(), packet.data(), static_cast<size_t>(length), 0), length);
    std::array<std::byte, 256> answer{};
    EXPECT_GT(::recv(victim.get(), answer.data(), answer.size(), 0), 0);
    // The magic is that of the greeting, the proof is not one.
    send_with_descriptor(victim, ConstBytes(packet).first(8 + sizeof(Mac)), segment_->fd());
  }
  client.join();
  EXPECT_EQ(refused.code(), Code::RemoteError) << refused.message();
  EXPECT_NE(refused.message().find("does not know the secret"), std::string::npos) << refused.message();
  ::unlink(path.c_str());
}

TEST_F(HandOver, AnIdlingStrangerHoldsNobodyUp) {
  std::vector<Descriptor> strangers;
  for (int i = 0; i < 5; ++i) strangers.push_back(connect_to(server_->path()));
  const char nonsense[] = "let me in";
  ASSERT_GT(::send(strangers[0].get(), nonsense, sizeof(nonsense), 0), 0);
  strangers[1] = Descriptor();
  const auto start = Clock::now();
  std::thread client([this] {
    const auto mine = fetch_segment(server_->path(), kBytes, key_, Deadline::after(kPatience));
    EXPECT_TRUE(mine.has_value()) << mine.error().message();
  });
  const Status status = server_->serve(*segment_, 1, Deadline::after(kPatience));
  client.join();
  EXPECT_TRUE(status.is_ok()) << status.message();
  EXPECT_LT(Clock::now() - start, std::chrono::milliseconds(1500));
}

TEST_F(HandOver, ManyStrangersAreShakenOff) {
  std::vector<Descriptor> strangers;
  for (int i = 0; i < 100; ++i) strangers.push_back(connect_to(server_->path()));  // more than it talks to at a time
  std::thread client([this] {
    const auto mine = fetch_segment(server_->path(), kBytes, key_, Deadline::after(kPatience));
    EXPECT_TRUE(mine.has_value()) << mine.error().message();
  });
  const Status status = server_->serve(*segment_, 1, Deadline::after(kPatience));
  client.join();
  EXPECT_TRUE(status.is_ok()) << status.message();
}

TEST_F(HandOver, AClientThatExpectsAnotherSizeGetsAnError) {
  Status refused;
  std::thread client([this, &refused] {
    refused = fetch_segment(server_->path(), 2 * kBytes, key_, Deadline::after(kPatience)).error();
  });
  EXPECT_TRUE(server_->serve(*segment_, 1, Deadline::after(kPatience)).is_ok());
  client.join();
  EXPECT_EQ(refused.code(), Code::InvalidArgument) << refused.message();
}

TEST_F(HandOver, BothSidesGiveUpAtTheirDeadline) {
  const auto start = Clock::now();
  const auto mine = fetch_segment(server_->path(), kBytes, key_, Deadline::after_ms(100));  // nobody serves
  ASSERT_FALSE(mine.has_value());
  EXPECT_EQ(mine.error().code(), Code::Timeout);
  const Status status = server_->serve(*segment_, 1, Deadline::after_ms(100));
  EXPECT_EQ(status.code(), Code::Timeout);
  EXPECT_LT(Clock::now() - start, std::chrono::seconds(5));
}

TEST_F(HandOver, TheDestructorRemovesTheFolderWhenNobodyCame) {
  const std::string folder = folder_of(server_->path());
  ASSERT_TRUE(std::filesystem::exists(folder));
  server_.reset();
  EXPECT_FALSE(std::filesystem::exists(folder));
}

TEST_F(HandOver, NobodyIsThereAnyMoreAfterwards) {
  const std::string path = server_->path();
  EXPECT_TRUE(server_->serve(*segment_, 0, Deadline::after(kPatience)).is_ok());
  const auto late = fetch_segment(path, kBytes, key_, Deadline::after(kPatience));
  ASSERT_FALSE(late.has_value());
  EXPECT_EQ(late.error().sys_errno(), ENOENT);
  EXPECT_EQ(server_->serve(*segment_, 1, Deadline::after(kPatience)).code(), Code::InvalidUsage);
}

TEST(HandOverFolder, FallsBackWhenTheUsersFolderIsOfNoUse) {
  const char* before = ::getenv("XDG_RUNTIME_DIR");
  const std::string saved = before != nullptr ? before : "";
  for (const char* useless : {"/nowhere/at/all", "relative", ""}) {
    ::setenv("XDG_RUNTIME_DIR", useless, 1);
    const auto server = SegmentServer::create(Secret::random());
    EXPECT_TRUE(server.has_value()) << useless;
  }
  before != nullptr ? ::setenv("XDG_RUNTIME_DIR", saved.c_str(), 1) : ::unsetenv("XDG_RUNTIME_DIR");
}

}  // namespace
}  // namespace ccom
