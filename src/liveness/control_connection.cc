// SPDX-License-Identifier: Apache-2.0
#include "liveness/control_connection.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

#include "base/tcp_socket.h"
#include "base/time.h"
#include "liveness/control_link.h"

namespace ccom {

namespace {

struct FrameHeader {
  uint8_t type = 0, tree = 0;
  uint16_t zero = 0;
  uint32_t payload_bytes = 0;
  uint64_t communicator = 0;
};
constexpr size_t kHeaderBytes = sizeof(FrameHeader);
static_assert(kHeaderBytes == 16 && std::has_unique_object_representations_v<FrameHeader>);
constexpr size_t kMacBytes = 16;
constexpr size_t kPieceBytes = 4096;
constexpr int64_t kRetryNs = 5 * kNsPerMs;  // to send what the socket has not taken

FrameHeader header_in(ConstBytes bytes) {
  FrameHeader header;
  std::memcpy(&header, bytes.data(), sizeof header);
  return header;
}

}  // namespace

ControlConnection::ControlConnection(ControlSocket socket, ConnectionTerms terms)
    : socket_(std::move(socket)), terms_(std::move(terms)) {
  readable_.task = this;
}

// Closing a socket with unread data sends a reset, which may destroy data in flight; so drain it first.
ControlConnection::~ControlConnection() {
  if (thread_ != nullptr && thread_->in_forked_child()) return;
  if (!has_ended()) {
    try {
      tell_of_closed();
    } catch (const std::bad_alloc&) {  // the end of the connection says it
    }
    flush();
    std::byte ignored[kPieceBytes];
    while (socket_.receive(ignored) > 0) continue;
    ::shutdown(fd(), SHUT_WR);
    if (thread_ != nullptr) thread_->unwatch(fd());
  }
  if (thread_ != nullptr) thread_->remove(this);
}

Status ControlConnection::run_on(LivenessThread& thread) {
  CCOM_TRY(thread.watch(fd(), &readable_));
  thread_ = &thread;
  thread.add(this);
  readable_.now = true;
  return {};
}

void ControlConnection::allow_silence(std::chrono::milliseconds silence) {
  if (silence <= silence_ || has_ended()) return;
  silence_ = silence;
  enable_keepalive(fd(), silence);
  set_user_timeout(fd(), silence);
}

int64_t ControlConnection::poll(int64_t now_ns) {
  if (readable_.now) receive();
  tell_of_closed();
  flush();
  if (readable_.now && !has_ended()) receive();
  return has_unsent() ? now_ns + kRetryNs : INT64_MAX;
}

Mac ControlConnection::frame_mac(const Secret& key, uint64_t counter, ConstBytes frame) const {
  std::vector<std::byte> message(sizeof counter + frame.size());
  std::memcpy(message.data(), &counter, sizeof counter);
  std::ranges::copy(frame, message.begin() + sizeof counter);
  return hmac_sha256(key, message);
}

// ---- streams

void ControlConnection::open(const StreamId& id, ControlLink* link) {
  const Lock lock(mutex_);
  if (has_ended()) return link->end(reason_, is_closed_by_peer_);
  streams_[id] = link;
}

// Without memory for what is to be said it is said later.
void ControlConnection::close(const StreamId& id, bool tells) {
  if (thread_ != nullptr && thread_->in_forked_child()) return;
  const Lock lock(mutex_);
  if (!tells || has_ended()) {
    streams_.erase(id);
    return;
  }
  streams_[id] = nullptr;
  has_untold_ = true;
  if (thread_ != nullptr) thread_->enqueue(this);
}

void ControlConnection::tell_of_closed() {
  if (!has_untold_) return;
  const Lock lock(mutex_);
  for (auto stream = streams_.begin(); stream != streams_.end();) {
    if (stream->second == nullptr) {
      append(stream->first, {MessageType::End});
      stream = streams_.erase(stream);
    } else {
      ++stream;
    }
  }
  has_untold_ = false;
}

void ControlConnection::append(const StreamId& id, const ControlMessage& message) {
  if (has_ended()) return;
  const std::vector<std::byte> payload = encode_message(message);
  const FrameHeader header{.type = static_cast<uint8_t>(message.type),
                           .tree = id.tree,
                           .payload_bytes = static_cast<uint32_t>(payload.size()),
                           .communicator = id.communicator};
  std::vector<std::byte> frame(kHeaderBytes + payload.size() + kMacBytes);
  std::memcpy(frame.data(), &header, kHeaderBytes);
  std::ranges::copy(payload, frame.begin() + kHeaderBytes);
  const Mac mac = frame_mac(terms_.send, sent_, ConstBytes(frame).first(frame.size() - kMacBytes));
  std::memcpy(frame.data() + frame.size() - kMacBytes, mac.data(), kMacBytes);
  unsent_.insert(unsent_.end(), frame.begin(), frame.end());
  ++sent_;
  if (thread_ != nullptr) thread_->enqueue(this);
}

// A failure here is reported by receive(), after everything the peer has sent.
void ControlConnection::flush() {
  while (!unsent_.empty()) {
    const ssize_t size = socket_.send(unsent_);
    if (size < 0 && errno == EINTR) continue;
    is_blocked_ = size < 0 && errno == EAGAIN;
    if (is_blocked_) return;
    if (size < 0) {
      unsent_.clear();
      readable_.now = true;
      if (thread_ != nullptr) thread_->enqueue(this);
      return;
    }
    unsent_.erase(unsent_.begin(), unsent_.begin() + size);
  }
}

// Memory may run out anywhere: what was read stays to be parsed.
void ControlConnection::receive() {
  while (!has_ended()) {
    parse();
    if (has_ended()) return;
    const size_t kept = unparsed_.size();
    unparsed_.resize(kept + kPieceBytes);
    const ssize_t size = socket_.receive(Bytes(unparsed_).subspan(kept));
    const int failure = errno;
    unparsed_.resize(kept + (size > 0 ? static_cast<size_t>(size) : 0));
    if (size < 0 && failure == EINTR) continue;
    if (size < 0 && failure == EAGAIN) {
      readable_.now = false;
      return;
    }
    if (size == 0) return end("closed by the peer", true);
    if (size < 0) return end(std::strerror(failure), failure == ECONNRESET || failure == EPIPE);
  }
}

void ControlConnection::parse() {
  while (unparsed_.size() >= kHeaderBytes) {
    const ConstBytes all(unparsed_);
    const size_t size = header_in(all).payload_bytes;
    if (size > kMostFrameBytes) return end("received an oversized frame", false);
    const size_t frame_bytes = kHeaderBytes + size;
    if (all.size() < frame_bytes + kMacBytes) return;
    const Mac expected = frame_mac(terms_.receive, received_, all.first(frame_bytes));
    const auto code = std::as_bytes(std::span(expected)).first(kMacBytes);
    if (!equal_in_constant_time(all.subspan(frame_bytes, kMacBytes), code))
      return end("received a frame with a wrong authentication code", false);
    deliver(all.first(kHeaderBytes), all.subspan(kHeaderBytes, size));
    ++received_;
    unparsed_.erase(unparsed_.begin(), unparsed_.begin() + static_cast<std::ptrdiff_t>(frame_bytes + kMacBytes));
  }
}

// What is wrong with a genuine message ends its stream alone.
void ControlConnection::deliver(ConstBytes bytes, ConstBytes payload) {
  const FrameHeader header = header_in(bytes);
  const Lock lock(mutex_);
  const auto found = streams_.find({header.communicator, header.tree});
  if (found == streams_.end() || found->second == nullptr) return;
  ControlLink& link = *found->second;
  std::optional<ControlMessage> message = decode_message(header.type, payload);
  message ? link.accept(*std::move(message)) : link.end("received a message that cannot be read", false);
}

void ControlConnection::end(const std::string& reason, bool by_peer) {
  {
    const Lock lock(mutex_);
    for (const auto& [id, link] : streams_)
      if (link != nullptr) link->end(reason, by_peer);
    streams_.clear();
    reason_ = reason;
    is_closed_by_peer_ = by_peer;
    has_ended_.store(true, std::memory_order_release);
  }
  unsent_.clear();
  unparsed_.clear();
  readable_.now = false;
  if (thread_ != nullptr) thread_->unwatch(fd());
  socket_.close();
}

}  // namespace ccom
