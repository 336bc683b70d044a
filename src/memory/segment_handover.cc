// SPDX-License-Identifier: Apache-2.0
//
// How the descriptor of a shared segment gets from the leader to the other ranks of a host: a handshake
// (base/handshake.h) that is bound to the socket's path, and the descriptor with its last message, the Welcome.
//
// One packet for each message on a SOCK_SEQPACKET socket; both sides also check the other's uid. Who does not finish
// within two seconds is dropped; all handshakes go on at the same time, so nobody delays the others.
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "base/descriptor.h"
#include "base/handshake.h"
#include "base/owned_folder.h"
#include "base/peer_user.h"
#include "memory/shared_segment.h"

namespace ccom {
namespace {

constexpr auto kHandshakeTime = std::chrono::seconds(2);
constexpr size_t kMaxPending = 64;

// The handshake's two sides.
constexpr int32_t kServer = 0;
constexpr int32_t kClient = 1;

HandshakeIdentity identity(const Secret& key, int32_t self, const std::string& path) {
  return {.protocol = HandshakeProtocol::Segment, .key = key, .self = self, .channel = path};
}

Descriptor new_socket() {
  return Descriptor::from([] { return ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0); });
}

bool send_packet(int socket, ConstBytes packet) {
  return ::send(socket, packet.data(), packet.size(), MSG_NOSIGNAL | MSG_DONTWAIT) ==
         static_cast<ssize_t>(packet.size());
}

bool send_with_descriptor(int socket, ConstBytes packet, int fd) {
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
  return ::sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == static_cast<ssize_t>(packet.size());
}

// The packet's length, -1 if there is none. Every descriptor that comes along is taken, so that none leaks; only a
// single one is of use.
ssize_t receive_with_descriptor(int socket, Bytes packet, Descriptor& fd) {
  alignas(cmsghdr) char control[CMSG_SPACE(4 * sizeof(int))] = {};
  iovec part{packet.data(), packet.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  const ssize_t length = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  if (length < 0) return -1;
  std::vector<Descriptor> received;
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr; header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    for (size_t at = CMSG_LEN(0); at + sizeof(int) <= header->cmsg_len; at += sizeof(int)) {
      int number = -1;
      std::memcpy(&number, reinterpret_cast<char*>(header) + at, sizeof(int));
      received.emplace_back(number);
    }
  }
  if (received.size() == 1 && (message.msg_flags & MSG_CTRUNC) == 0) fd = std::move(received[0]);
  return (message.msg_flags & MSG_TRUNC) == 0 ? length : static_cast<ssize_t>(packet.size()) + 1;
}

int poll_timeout_ms(Deadline deadline) {
  return static_cast<int>(std::min<int64_t>(deadline.left_ms() + 1, 3'600'000));
}

struct OwnedFolder {
  std::string path;
  Descriptor lock;
};

// A folder that only this user can enter, in the first place that takes one. Those of processes that were killed go.
Result<OwnedFolder> make_private_folder() {
  std::string reasons;
  const std::array<const char*, 5> places{::getenv("XDG_RUNTIME_DIR"), ::getenv("TMPDIR"), "/tmp", "/var/tmp",
                                          "/dev/shm"};
  for (const char* place : places) {
    if (place == nullptr || place[0] != '/') continue;
    std::string name = std::string(place) + "/ccom-segment-XXXXXX";
    if (name.size() + sizeof("/s") > sizeof(sockaddr_un::sun_path)) continue;
    remove_abandoned_folders(place, "ccom-segment-", 6, "s");
    if (::mkdtemp(name.data()) != nullptr) {
      Descriptor lock = lock_folder(name);
      if (lock.is_open()) return OwnedFolder{std::move(name), std::move(lock)};
      (void)::rmdir(name.c_str());  // another process has taken it for an abandoned one in that moment
    }
    reasons += (reasons.empty() ? "" : "; ") + std::string(place) + ": " + std::strerror(errno);
  }
  return error(ErrorKey::HandoverFolder, "make a folder for the socket that hands over shared memory: %s",
               reasons.c_str())
      .with_cure("let TMPDIR name a folder that can be written");
}

sockaddr_un address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  return address;
}

// A client, or somebody else, whose handshake is not finished.
struct PendingClient {
  Descriptor socket;
  Handshake handshake;
  Deadline deadline;
};

class UnixSegmentServer final : public SegmentServer {
 public:
  UnixSegmentServer(const Secret& key, OwnedFolder folder)
      : key_(key), folder_(std::move(folder)), path_(folder_.path + "/s") {}
  ~UnixSegmentServer() override { close_and_remove(); }

  std::string path() const override { return path_; }
  Status listen();
  Status serve(const SharedSegment& segment, int clients, const WaitLimit& limit) override;

 private:
  Status accept_all();
  // Continues the handshake. Done: the client has the descriptor.
  enum class Progress { Waiting, Done, Refused };
  Progress advance(PendingClient& client, int fd) const;
  void close_and_remove();

  const Secret key_;
  OwnedFolder folder_;
  const std::string path_;
  Descriptor listener_;
  std::vector<PendingClient> pending_;
  bool removed_ = false;
};

Status UnixSegmentServer::listen() {
  listener_ = new_socket();
  const sockaddr_un address = address_of(path_);
  if (listener_.get() < 0 ||
      ::bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 ||
      ::listen(listener_.get(), SOMAXCONN) != 0) {
    return system_error(errno, "hand over shared memory: listen at %s", path_.c_str());
  }
  return Status::ok();
}

Status UnixSegmentServer::accept_all() {
  const auto accept = [this] { return ::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK); };
  while (pending_.size() < kMaxPending) {
    auto socket = Descriptor::from(accept);
    if (socket.get() < 0) {
      if (errno == EINTR || errno == ECONNABORTED) continue;
      if (errno == EAGAIN) return Status::ok();
      return system_error(errno, "hand over shared memory: accept at %s", path_.c_str());
    }
    if (!is_of_this_user(socket.get())) continue;
    pending_.push_back(
        {std::move(socket), Handshake::acceptor(identity(key_, kServer, path_)), Deadline::after(kHandshakeTime)});
  }
  return Status::ok();
}

UnixSegmentServer::Progress UnixSegmentServer::advance(PendingClient& client, int fd) const {
  const int socket = client.socket.get();
  HandshakeMessage message;
  const ssize_t length = ::recv(socket, &message, sizeof message, MSG_DONTWAIT | MSG_TRUNC);
  if (length != static_cast<ssize_t>(sizeof message) || !client.handshake.receive(message)) return Progress::Refused;
  const bool is_proved = client.handshake.step() == HandshakeStep::Welcome;
  const HandshakeMessage reply = client.handshake.next();
  if (!is_proved) return send_packet(socket, reply.bytes()) ? Progress::Waiting : Progress::Refused;
  return send_with_descriptor(socket, reply.bytes(), fd) ? Progress::Done : Progress::Refused;
}

Status UnixSegmentServer::serve(const SharedSegment& segment, int clients, const WaitLimit& limit) {
  if (removed_) return error(Code::InvalidUsage, "hand over shared memory: served already");
  for (int served = 0; served < clients;) {
    if (limit.is_reached()) {
      return error(Code::Timeout, "hand over shared memory at %s: %d of %d clients came", path_.c_str(), served,
                   clients);
    }
    const bool full = pending_.size() >= kMaxPending;
    Deadline next = limit.next_look();
    std::vector<pollfd> polled;
    for (const PendingClient& client : pending_) {
      polled.push_back({client.socket.get(), POLLIN, 0});
      if (full) next = next.earlier(client.deadline);
    }
    polled.push_back({full ? -1 : listener_.get(), POLLIN, 0});
    if (::poll(polled.data(), polled.size(), poll_timeout_ms(next)) < 0) {
      if (errno == EINTR) continue;
      return system_error(errno, "hand over shared memory at %s: poll", path_.c_str());
    }
    for (size_t i = pending_.size(); i-- > 0 && served < clients;) {
      if (polled[i].revents == 0) continue;
      const Progress progress = advance(pending_[i], segment.fd());
      if (progress == Progress::Waiting) continue;
      if (progress == Progress::Done) ++served;
      pending_.erase(pending_.begin() + static_cast<ptrdiff_t>(i));
    }
    // Who takes long may be a rank that lost the processor. It is dropped only where others wait for its place.
    if (full) std::erase_if(pending_, [](const PendingClient& client) { return client.deadline.passed(); });
    CCOM_TRY(accept_all());
  }
  close_and_remove();
  return Status::ok();
}

void UnixSegmentServer::close_and_remove() {
  pending_.clear();
  listener_ = Descriptor();
  if (std::exchange(removed_, true)) return;
  ::unlink(path_.c_str());
  ::rmdir(folder_.path.c_str());
  folder_.lock = Descriptor();
}

// A full backlog answers EAGAIN and cannot be polled for.
Status connect_to(const Descriptor& socket, const std::string& path, const WaitLimit& limit) {
  const sockaddr_un address = address_of(path);
  if (path.size() >= sizeof(address.sun_path)) return error(Code::InvalidArgument, "path too long: %s", path.c_str());
  while (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    if (errno != EAGAIN && errno != EINTR) return system_error(errno, "connect");
    if (limit.is_reached()) return error(Code::Timeout, "connect: the leader does not answer");
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  if (!is_of_this_user(socket.get())) return error(Code::RemoteError, "the leader runs under another user");
  return {};
}

Status await_packet(const Descriptor& socket, const WaitLimit& limit) {
  while (true) {
    pollfd polled{socket.get(), POLLIN, 0};
    const int ready = ::poll(&polled, 1, poll_timeout_ms(limit.next_look()));
    if (ready > 0) return Status::ok();
    if (ready < 0 && errno != EINTR) return system_error(errno, "poll");
    if (limit.is_reached()) return error(Code::Timeout, "the leader does not answer");
  }
}

// A packet of `length` bytes as the leader's next message.
Status check(Handshake& handshake, ssize_t length, const HandshakeMessage& message) {
  if (length <= 0) return error(Code::RemoteError, "the leader refused; do all ranks have the same secret?");
  if (length != static_cast<ssize_t>(sizeof message) || message.magic != kHandshakeMagic) {
    return error(Code::RemoteError, "what answers there is no leader of this version of ccom");
  }
  if (!handshake.receive(message)) return error(Code::RemoteError, "the leader does not know the secret");
  return Status::ok();
}

Result<Descriptor> fetch_descriptor(const Descriptor& socket, const std::string& path, const Secret& key,
                                    const WaitLimit& limit) {
  CCOM_TRY(connect_to(socket, path, limit));
  Handshake handshake = Handshake::connector(identity(key, kClient, path), kServer);
  if (!send_packet(socket.get(), handshake.next().bytes())) return system_error(errno, "send to the leader");
  CCOM_TRY(await_packet(socket, limit));
  HandshakeMessage message;
  const ssize_t length = ::recv(socket.get(), &message, sizeof message, MSG_DONTWAIT | MSG_TRUNC);
  CCOM_TRY(check(handshake, length, message));
  if (!send_packet(socket.get(), handshake.next().bytes())) return system_error(errno, "send to the leader");
  CCOM_TRY(await_packet(socket, limit));
  Descriptor fd;
  const ssize_t last_length = receive_with_descriptor(socket.get(), message.writable_bytes(), fd);
  CCOM_TRY(check(handshake, last_length, message));
  if (!fd.is_open()) return error(Code::RemoteError, "the leader has sent no descriptor");
  return fd;
}

}  // namespace

Result<std::unique_ptr<SegmentServer>> SegmentServer::create(const Secret& key) {
  CCOM_TRY_ASSIGN(OwnedFolder folder, make_private_folder());
  auto server = std::make_unique<UnixSegmentServer>(key, std::move(folder));
  CCOM_TRY(server->listen());
  return std::unique_ptr<SegmentServer>(std::move(server));
}

Result<Descriptor> open_segment_client() {
  Descriptor client = new_socket();
  if (!client.is_open()) return system_error(errno, "open a socket to fetch shared memory");
  return client;
}

Result<std::unique_ptr<SharedSegment>> fetch_segment(const std::string& path, size_t size_bytes, const Secret& key,
                                                     const WaitLimit& limit) {
  CCOM_TRY_ASSIGN(Descriptor client, open_segment_client());
  return fetch_segment(std::move(client), path, size_bytes, key, limit);
}

Result<std::unique_ptr<SharedSegment>> fetch_segment(Descriptor client, const std::string& path, size_t size_bytes,
                                                     const Secret& key, const WaitLimit& limit) {
  const std::string what = "fetch shared memory at " + path;
  Result<Descriptor> fd = fetch_descriptor(client, path, key, limit);
  if (!fd) return std::move(fd).error().in(what);
  return SharedSegment::attach(fd->release(), size_bytes);
}

}  // namespace ccom
