// SPDX-License-Identifier: Apache-2.0
//
// The hand-over of a segment: clients are threads, strangers are sockets that do not know the key. Shown: everybody who
// knows the key gets the same memory, nobody else gets anything, nobody holds the others up, nothing stays behind.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <future>
#include <thread>
#include <vector>

#include "base/descriptor.h"
#include "base/handshake.h"
#include "memory/shared_segment.h"
#include "tests/harness/child.h"
#include "tests/harness/environment.h"

namespace ccom {
namespace {

constexpr size_t kBytes = size_t{1} << 20;
constexpr auto kPatience = std::chrono::seconds(30);

sockaddr_un address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  return address;
}

Descriptor connect_to(const std::string& path) {
  Descriptor socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  const sockaddr_un address = address_of(path);
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
  // A client, in a thread of its own.
  static std::future<Result<std::unique_ptr<SharedSegment>>> fetching(const std::string& path, const Secret& key,
                                                                      size_t bytes = kBytes) {
    return std::async(std::launch::async, [=] { return fetch_segment(path, bytes, key, Deadline::after(kPatience)); });
  }
  void expect_handed_over() {
    auto client = fetching(server_->path(), key_);
    const Status status = server_->serve(*segment_, 1, Deadline::after(kPatience));
    EXPECT_TRUE(status.is_ok()) << status.message();
    const auto mine = client.get();
    EXPECT_TRUE(mine.has_value()) << mine.error().message();
  }
  const Secret key_;
  std::unique_ptr<SharedSegment> segment_;
  std::unique_ptr<SegmentServer> server_;
};

void expect_silent(const Descriptor& socket) {
  HandshakeMessage nothing;
  EXPECT_LE(::recv(socket.get(), &nothing, sizeof nothing, MSG_DONTWAIT), 0);
}

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
  auto intruder = fetching(server_->path(), Secret::random());
  const Status served = server_->serve(*segment_, 1, Deadline::after_ms(500));
  const Status refused = intruder.get().error();
  EXPECT_EQ(refused.code(), Code::RemoteError) << refused.message();
  EXPECT_EQ(served.code(), Code::Timeout);
  EXPECT_NE(served.message().find("0 of 1"), std::string::npos) << served.message();
}

// What a leader of our own making listens at, beside the true one.
struct FalseLeader {
  explicit FalseLeader(std::string where)
      : path(std::move(where)), listener(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)) {
    const sockaddr_un address = address_of(path);
    EXPECT_EQ(::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
    EXPECT_EQ(::listen(listener.get(), 1), 0);
  }
  ~FalseLeader() { ::unlink(path.c_str()); }
  Descriptor accept() const { return Descriptor(::accept(listener.get(), nullptr, nullptr)); }

  const std::string path;
  const Descriptor listener;
};

HandshakeMessage heard(const Descriptor& socket) {
  HandshakeMessage message;
  EXPECT_EQ(::recv(socket.get(), &message, sizeof message, 0), static_cast<ssize_t>(sizeof message));
  return message;
}

void say(const Descriptor& socket, const HandshakeMessage& message) {
  EXPECT_EQ(::send(socket.get(), &message, sizeof message, 0), static_cast<ssize_t>(sizeof message));
}

HandshakeIdentity side(const Secret& key, int32_t self, const std::string& path) {
  return {.protocol = HandshakeProtocol::Segment, .key = key, .self = self, .channel = path};
}

TEST_F(HandOver, AClientRefusesALeaderWithAnotherKey) {
  const FalseLeader leader(folder_of(server_->path()) + "/false");
  auto client = fetching(leader.path, key_);
  {
    // Answers whatever it hears, and hands over a descriptor of its own.
    const Secret other = Secret::random();
    Handshake accomplice = Handshake::connector(side(other, 1, leader.path), 0);
    Handshake acceptor = Handshake::acceptor(side(other, 0, leader.path));
    const Descriptor victim = leader.accept();
    (void)heard(victim);
    ASSERT_TRUE(acceptor.receive(accomplice.next()));
    send_with_descriptor(victim, acceptor.next().bytes(), segment_->fd());
  }
  const Status refused = client.get().error();
  EXPECT_EQ(refused.code(), Code::RemoteError) << refused.message();
  EXPECT_NE(refused.message().find("does not know the secret"), std::string::npos) << refused.message();
}

// One in the middle hands on what both sides say, to end with a descriptor of its own.
TEST_F(HandOver, TheTrueLeaderDoesNotAnswerForAFalseOne) {
  const FalseLeader leader(folder_of(server_->path()) + "/false");
  auto client = fetching(leader.path, key_);
  {
    const Descriptor victim = leader.accept();
    const Descriptor true_leader = connect_to(server_->path());
    say(true_leader, heard(victim));
    EXPECT_EQ(server_->serve(*segment_, 1, Deadline::after_ms(100)).code(), Code::Timeout);
    expect_silent(true_leader);
  }
  const Status refused = client.get().error();
  EXPECT_EQ(refused.code(), Code::RemoteError) << refused.message();
}

TEST_F(HandOver, RefusesRecordingsAndOtherProtocols) {
  const std::string path = server_->path();
  Handshake recorded = Handshake::connector(side(key_, 1, path), 0);
  Handshake unused = Handshake::acceptor(side(key_, 0, path));
  const HandshakeMessage hello = recorded.next();
  ASSERT_TRUE(unused.receive(hello));
  const HandshakeMessage answer = unused.next();
  ASSERT_TRUE(recorded.receive(answer));
  const HandshakeMessage confirm = recorded.next();
  const Descriptor replaying = connect_to(path), tcp = connect_to(path), reflecting = connect_to(path);
  say(replaying, hello);
  say(reflecting, answer);
  say(tcp, Handshake::connector({HandshakeProtocol::Tcp, key_, 0, 1, path}, 0).next());
  EXPECT_EQ(server_->serve(*segment_, 1, Deadline::after_ms(100)).code(), Code::Timeout);
  EXPECT_EQ(heard(replaying).step, HandshakeStep::Answer);
  say(replaying, confirm);
  EXPECT_EQ(server_->serve(*segment_, 1, Deadline::after_ms(100)).code(), Code::Timeout);
  for (const Descriptor* socket : {&replaying, &tcp, &reflecting}) expect_silent(*socket);
}

TEST_F(HandOver, AnIdlingStrangerHoldsNobodyUp) {
  std::vector<Descriptor> strangers;
  for (int i = 0; i < 5; ++i) strangers.push_back(connect_to(server_->path()));
  const char nonsense[] = "let me in";
  ASSERT_GT(::send(strangers[0].get(), nonsense, sizeof(nonsense), 0), 0);
  strangers[1] = Descriptor();
  const auto start = Clock::now();
  expect_handed_over();
  EXPECT_LT(Clock::now() - start, std::chrono::milliseconds(1500));
}

// On a crowded machine.
TEST_F(HandOver, WaitsForAClientThatLostTheProcessor) {
  const std::string path = server_->path();
  std::thread client([this, &path] {
    const Descriptor socket = connect_to(path);
    Handshake slow = Handshake::connector(side(key_, 1, path), 0);
    say(socket, slow.next());
    ASSERT_TRUE(slow.receive(heard(socket)));
    std::this_thread::sleep_for(std::chrono::milliseconds(2500));  // an idle stranger may take two seconds
    say(socket, slow.next());
    EXPECT_EQ(heard(socket).step, HandshakeStep::Welcome);
  });
  const Status status = server_->serve(*segment_, 1, Deadline::after(kPatience));
  client.join();
  EXPECT_TRUE(status.is_ok()) << status.message();
}

TEST_F(HandOver, ManyStrangersAreShakenOff) {
  std::vector<Descriptor> strangers;
  for (int i = 0; i < 100; ++i) strangers.push_back(connect_to(server_->path()));  // more than it talks to at a time
  expect_handed_over();
}

TEST_F(HandOver, AClientThatExpectsAnotherSizeGetsAnError) {
  auto client = fetching(server_->path(), key_, 2 * kBytes);
  EXPECT_TRUE(server_->serve(*segment_, 1, Deadline::after(kPatience)).is_ok());
  const Status refused = client.get().error();
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

// At the start: another rank has died meanwhile.
TEST_F(HandOver, BothSidesGiveUpWhenWaitingIsOfNoUse) {
  int asked = 0;
  const auto third = [&asked] { return ++asked == 3; };
  const auto start = Clock::now();
  EXPECT_FALSE(fetch_segment(server_->path(), kBytes, key_, {Deadline::after(kPatience), third}));
  EXPECT_EQ(asked, 3);
  asked = 0;
  EXPECT_EQ(server_->serve(*segment_, 1, {Deadline::after(kPatience), third}).code(), Code::Timeout);
  EXPECT_EQ(asked, 3);
  EXPECT_LT(Clock::now() - start, kPatience / 2);
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

TEST(HandOverFolder, OfAKilledProcessIsRemovedByTheNextOneAndThatOfALivingOneIsNot) {
  Child victim([](const PacketSocket& test) {
    const auto server = *SegmentServer::create(Secret::random());
    test.send(server->path());
    return ::pause();
  });
  const std::string path = victim.receive();
  const auto first = *SegmentServer::create(Secret::random());
  EXPECT_TRUE(std::filesystem::exists(path));
  victim.kill();
  const auto second = *SegmentServer::create(Secret::random());
  EXPECT_FALSE(std::filesystem::exists(folder_of(path)));
  EXPECT_TRUE(std::filesystem::exists(first->path()));
}

// Others of this user lock nothing, so theirs look abandoned: only the name and the file in it tell them apart.
TEST(HandOverFolder, OfOthersAreLeftAlone) {
  const std::string own = folder_of((*SegmentServer::create(Secret::random()))->path());
  const std::string place = std::filesystem::path(own).parent_path();
  const std::vector<std::string> folders{place + "/ccom-models", place + "/ccom-segment-models"};
  for (const std::string& folder : folders) {
    std::filesystem::create_directory(folder);
    std::filesystem::permissions(folder, std::filesystem::perms::owner_all);
    std::ofstream(folder + "/weights") << "of somebody else";
  }
  EXPECT_TRUE(SegmentServer::create(Secret::random()));
  for (const std::string& folder : folders) {
    EXPECT_TRUE(std::filesystem::exists(folder + "/weights"));
    std::filesystem::remove_all(folder);
  }
}

TEST(HandOverFolder, FallsBackWhenTheUsersFolderIsOfNoUse) {
  for (const char* useless : {"/nowhere/at/all", "relative", ""}) {
    const ScopedVariable folder("XDG_RUNTIME_DIR", useless);
    const auto server = SegmentServer::create(Secret::random());
    EXPECT_TRUE(server.has_value()) << useless;
  }
}

}  // namespace
}  // namespace ccom
