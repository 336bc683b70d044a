// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/relay_line.h"

#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <thread>

#include "base/owned_folder.h"
#include "base/peer_user.h"
#include "bootstrap/gathering.h"

namespace ccom {
namespace {

// A relay has no rank of its own.
constexpr Rank kRelay = -2;
constexpr size_t kMostMessageBytes = kMaxExchangeBytes + kMaxPartBytes;

// Of a message's length: it lies in the memory that comes with it. Shorter ones cost more there than on the way.
constexpr uint32_t kInMemory = uint32_t{1} << 31;
constexpr size_t kMostOnTheWay = size_t{1} << 16;
static_assert(kMostMessageBytes < kInMemory);

constexpr const char* kPlace = "/tmp";
constexpr const char* kPrefix = "ccom-meet-";
constexpr size_t kNameDigits = 32;

// Addresses such as 127.0.0.1 are another server's in another namespace.
std::string folder_of(const Secret& key, const std::string& host) {
  constexpr char kDigits[] = "0123456789abcdef";
  struct stat network {};
  (void)::stat("/proc/self/ns/net", &network);
  const Secret digest =
      key.derive("ccom relay name " + std::to_string(::geteuid()) + " " + std::to_string(network.st_ino) + " " + host);
  std::string folder = std::string(kPlace) + "/" + kPrefix;
  for (const uint8_t byte : digest.bytes().first(kNameDigits / 2)) {
    folder.push_back(kDigits[byte >> 4]);
    folder.push_back(kDigits[byte & 15]);
  }
  return folder;
}

struct RelayAddress {
  explicit RelayAddress(const std::string& folder) {
    address.sun_family = AF_UNIX;
    (folder + "/s").copy(address.sun_path, sizeof address.sun_path - 1);
  }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address); }
  sockaddr_un address{};
  static constexpr socklen_t kLength = sizeof address;
};

Descriptor new_relay_socket() {
  return Descriptor::from([] { return ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0); });
}

// False: it does not lie there.
bool read_all(int memory, size_t size, std::string& text) {
  struct stat found {};
  if (::fstat(memory, &found) != 0 || !S_ISREG(found.st_mode) || static_cast<size_t>(found.st_size) != size)
    return false;
  text.resize(size);
  for (size_t done = 0; done < size;) {
    const ssize_t got = ::pread(memory, text.data() + done, size - done, static_cast<off_t>(done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    done += static_cast<size_t>(got);
  }
  return true;
}

}  // namespace

RelayPlace::RelayPlace(const UniqueId& id, const std::string& host)
    : RelayPlace(id.secret, id.communicator, "relay " + host) {}

RelayPlace::RelayPlace(const Secret& secret, uint64_t communicator, const std::string& host)
    : key_(secret.derive("ccom relay " + std::to_string(communicator))),
      communicator_(communicator),
      folder_(folder_of(key_, host)) {}

RelayPlace RelayPlace::of_server(const Secret& secret, uint64_t communicator) {
  return {secret, communicator, "server"};
}

RelaySocket& RelaySocket::operator=(RelaySocket&& other) noexcept {
  close();
  folder_ = std::exchange(other.folder_, {});
  lock_ = std::move(other.lock_);
  socket_ = std::move(other.socket_);
  return *this;
}

void RelaySocket::close() {
  socket_ = Descriptor();
  if (folder_.empty()) return;
  ::unlink((folder_ + "/s").c_str());
  ::rmdir(folder_.c_str());
  folder_.clear();
  lock_ = Descriptor();
}

// Another process may take the folder for an abandoned one before it is locked: it is made again.
RelaySocket RelayPlace::listen() const {
  constexpr int kTries = 10;
  RelaySocket made;
  remove_abandoned_folders(kPlace, kPrefix, kNameDigits, "s");
  for (int tries = 0; tries < kTries && !made.lock_.is_open(); ++tries) {
    if (::mkdir(folder_.c_str(), 0700) != 0) return {};
    made.lock_ = lock_folder(folder_);
  }
  if (!made.lock_.is_open()) return {};
  made.folder_ = folder_;
  const RelayAddress address(folder_);
  Descriptor socket = new_relay_socket();
  const bool listens = socket.is_open() && ::bind(socket.get(), address.get(), RelayAddress::kLength) == 0 &&
                       ::listen(socket.get(), SOMAXCONN) == 0;
  if (!listens) return {};
  made.socket_ = std::move(socket);
  return made;
}

Descriptor RelayPlace::try_to_connect() const {
  const RelayAddress address(folder_);
  Descriptor socket = new_relay_socket();
  const bool is_there = socket.is_open() && ::connect(socket.get(), address.get(), RelayAddress::kLength) == 0;
  return is_there && is_of_this_user(socket.get()) ? std::move(socket) : Descriptor();
}

// A socket is bound before it listens, and the queue of one that does may be full.
Descriptor RelayPlace::connect() const {
  constexpr int kAttempts = 2000;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    errno = 0;
    if (Descriptor socket = try_to_connect(); socket.is_open()) return socket;
    if (errno == 0) break;  // of another user
    if (errno != EAGAIN && errno != EINTR && attempt > kAttempts / 100) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return Descriptor();
}

HandshakeIdentity RelayPlace::identity(Rank self) const {
  return {.protocol = HandshakeProtocol::Relay, .key = key_, .communicator = communicator_, .self = self};
}

RelayLine::RelayLine(Descriptor socket, Handshake handshake)
    : socket_(std::move(socket)), handshake_(std::move(handshake)) {}

RelayLine RelayLine::accepted(Descriptor socket, const RelayPlace& place) {
  const bool is_friend = is_of_this_user(socket.get());
  RelayLine line(std::move(socket), Handshake::acceptor(place.identity(kRelay)));
  line.has_ended_ = !is_friend;
  return line;
}

RelayLine RelayLine::connected(Descriptor socket, const RelayPlace& place, Rank self) {
  RelayLine line(std::move(socket), Handshake::connector(place.identity(self), kRelay));
  line.prove();
  return line;
}

// Memory that comes before who sends it has proved itself is closed.
ssize_t RelayLine::read_some() {
  std::array<char, 1 << 16> bytes;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  iovec place{.iov_base = bytes.data(), .iov_len = bytes.size()};
  msghdr message{};
  message.msg_iov = &place;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const ssize_t got = ::recvmsg(socket_.get(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (got <= 0) return got;
  unparsed_.append(bytes.data(), static_cast<size_t>(got));
  const cmsghdr* const with = CMSG_FIRSTHDR(&message);
  if (with == nullptr || with->cmsg_level != SOL_SOCKET || with->cmsg_type != SCM_RIGHTS) return got;
  int fd = -1;
  std::memcpy(&fd, CMSG_DATA(with), sizeof fd);
  Descriptor memory(fd);
  if (is_proved()) memories_.push_back(std::move(memory));
  return got;
}

void RelayLine::step() {
  while (!has_ended_) {
    const ssize_t got = read_some();
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) break;
    has_ended_ |= got <= 0;
  }
  prove();
  flush();
}

// Messages of the handshake, ours and theirs, as far as they go.
void RelayLine::prove() {
  while (!handshake_.is_complete()) {
    if (handshake_.is_our_turn()) {
      const HandshakeMessage message = handshake_.next();
      add_unsent({reinterpret_cast<const char*>(&message), sizeof message});
      continue;
    }
    if (unparsed_.size() < sizeof(HandshakeMessage)) break;
    HandshakeMessage message;
    std::memcpy(&message, unparsed_.data(), sizeof message);
    unparsed_.erase(0, sizeof message);
    has_ended_ |= !handshake_.receive(message);
    if (has_ended_) return;
  }
  flush();
}

// Memory goes with the first byte that is sent with it, so that it arrives before the rest.
void RelayLine::flush() {
  while (!unsent_.empty() && !has_ended_) {
    Unsent& next = unsent_.front();
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
    iovec place{.iov_base = next.bytes.data(), .iov_len = next.bytes.size()};
    msghdr message{};
    message.msg_iov = &place;
    message.msg_iovlen = 1;
    if (next.memory != nullptr) {
      message.msg_control = control.data();
      message.msg_controllen = control.size();
      cmsghdr* const with = CMSG_FIRSTHDR(&message);
      with->cmsg_level = SOL_SOCKET;
      with->cmsg_type = SCM_RIGHTS;
      with->cmsg_len = CMSG_LEN(sizeof(int));
      const int fd = next.memory->get();
      std::memcpy(CMSG_DATA(with), &fd, sizeof fd);
    }
    const ssize_t sent = ::sendmsg(socket_.get(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno == EAGAIN) return;
    if (sent < 0) return unsent_.clear();  // what has arrived can still be received
    next.memory.reset();
    next.bytes.erase(0, static_cast<size_t>(sent));
    if (next.bytes.empty()) unsent_.pop_front();
  }
}

RelayedText::RelayedText(std::string text) : text_(std::move(text)) {
  if (text_.size() <= kMostOnTheWay) return;
  Descriptor memory(::memfd_create("ccom relayed", MFD_CLOEXEC));
  size_t done = 0;
  while (memory.is_open() && done < text_.size()) {
    const ssize_t written = ::write(memory.get(), text_.data() + done, text_.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;  // it goes as a short one does
    done += static_cast<size_t>(written);
  }
  if (memory.is_open()) memory_ = std::make_shared<const Descriptor>(std::move(memory));
}

void RelayLine::send(const std::string& message) {
  const auto size = static_cast<uint32_t>(message.size());
  add_unsent({reinterpret_cast<const char*>(&size), sizeof size});
  add_unsent(message);
  flush();
}

void RelayLine::send(const RelayedText& message) {
  if (message.memory_ == nullptr) return send(message.text_);
  const uint32_t size = static_cast<uint32_t>(message.text_.size()) | kInMemory;
  unsent_.push_back(
      {.bytes = std::string(reinterpret_cast<const char*>(&size), sizeof size), .memory = message.memory_});
  flush();
}

std::optional<std::string> RelayLine::receive() {
  uint32_t said = 0;
  if (!is_proved() || unparsed_.size() < sizeof said) return std::nullopt;
  std::memcpy(&said, unparsed_.data(), sizeof said);
  const size_t size = said & ~kInMemory, on_the_way = (said & kInMemory) == 0 ? size : 0;
  has_ended_ |= size > kMostMessageBytes;
  if (size > kMostMessageBytes || unparsed_.size() - sizeof said < on_the_way) return std::nullopt;
  std::string message = unparsed_.substr(sizeof said, on_the_way);
  unparsed_.erase(0, sizeof said + on_the_way);
  if (on_the_way == size) return message;
  const bool is_there = !memories_.empty() && read_all(memories_.front().get(), size, message);
  if (!memories_.empty()) memories_.pop_front();
  if (is_there) return message;
  has_ended_ = true;
  return std::nullopt;
}

bool RelayLine::has_news() const {
  pollfd polled{socket_.get(), POLLIN, 0};
  return has_ended_ || !unparsed_.empty() || ::poll(&polled, 1, 0) != 0;
}

}  // namespace ccom
