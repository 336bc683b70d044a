// SPDX-License-Identifier: Apache-2.0
//
// An authenticated connection between two ranks, over TCP after the handshake, that carries the streams of all control
// trees that join these ranks: of a communicator and of its parts (control_link.h).
//
// Frame: {type u8, tree u8, 2 zero bytes, payload size u32, communicator u64, payload, 16 bytes of HMAC(key of the
// direction, counter || header || payload)}. The counter, of the connection, protects against replay, reordering and
// omission, and the code covers whose stream a frame belongs to. The size is checked against kMostFrameBytes first. The
// keys follow from the key of the family (control_family.h): who holds that can derive those of all its parts anyway.
// With CCOM_TLS=1 frames travel inside TLS. A frame for a stream that is not open here is dropped.
//
// Non-blocking. Streams may be opened by any thread, the rest belongs to the liveness thread, whose task it is.
#pragma once

#include <atomic>
#include <compare>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/secret.h"
#include "liveness/liveness_thread.h"
#include "liveness/message.h"
#include "liveness/sockets.h"

namespace ccom {

class ControlLink;

// The keys of the two directions, and what both ends call the connection.
struct ConnectionTerms {
  Secret send, receive;
  uint64_t number = 0;
};

// A control tree of a communicator, or what else has a stream of its own there.
struct StreamId {
  uint64_t communicator = 0;
  uint8_t tree = 0;
  friend auto operator<=>(const StreamId&, const StreamId&) = default;
};

class ControlConnection final : public LivenessTask {
 public:
  // Of the payload: messages of agreement have two bytes for each rank, and there are at most 2^17.
  static constexpr size_t kMostFrameBytes = size_t{1} << 18;

  ControlConnection(ControlSocket socket, ConnectionTerms terms);
  // Sends what the socket takes, then the end of the stream: the peer receives everything before it.
  ~ControlConnection() override;
  ControlConnection(const ControlConnection&) = delete;
  ControlConnection& operator=(const ControlConnection&) = delete;

  // From now on the thread, which must outlive it, reads and writes. Before that, and without a thread, whoever has it
  // calls receive() and flush().
  Status run_on(LivenessThread& thread);
  uint64_t number() const { return terms_.number; }
  bool is_encrypted() const { return socket_.is_encrypted(); }
  // Not whether the peer lives, of which this end may not know yet. Any thread.
  bool has_ended() const { return has_ended_.load(std::memory_order_acquire); }
  int fd() const { return socket_.fd(); }
  bool has_unsent() const { return !unsent_.empty(); }
  // The other host may be silent for so long before the kernel ends the connection; the longest counts.
  void allow_silence(std::chrono::milliseconds silence);
  // Reads what is there, for the streams.
  void receive();
  // Sends what the socket takes; the rest follows.
  void flush();

  int64_t poll(int64_t now_ns) override;
  bool has_work() const override { return false; }  // the thread is told
  void run_out_of_memory() noexcept override {}     // nothing is lost: poll() goes on
  const std::atomic<uint32_t>* awaited_word() const override { return nullptr; }

 private:
  friend class ControlLink;
  // Of links. Nothing if the connection has ended.
  void open(const StreamId& id, ControlLink* link);
  // tells: the peer.
  void close(const StreamId& id, bool tells);
  void append(const StreamId& id, const ControlMessage& message);
  // Whether the peer takes nothing at present.
  bool is_blocked() const { return is_blocked_; }

  void tell_of_closed();
  void parse();
  void deliver(ConstBytes header, ConstBytes payload);
  Mac frame_mac(const Secret& key, uint64_t counter, ConstBytes frame) const;
  void end(const std::string& reason, bool by_peer);

  ControlSocket socket_;
  const ConnectionTerms terms_;
  LivenessThread* thread_ = nullptr;
  Readable readable_;
  uint64_t sent_ = 0, received_ = 0;  // frames
  std::vector<std::byte> unsent_, unparsed_;
  bool is_blocked_ = false;
  std::chrono::milliseconds silence_{0};
  std::atomic<bool> has_ended_ = false;
  Mutex mutex_;
  std::map<StreamId, ControlLink*> streams_ CCOM_GUARDED_BY(mutex_);  // null: closed, and the peer is not told yet
  bool has_untold_ = false;                                           // of these
  std::string reason_ CCOM_GUARDED_BY(mutex_);                        // of its end
  bool is_closed_by_peer_ CCOM_GUARDED_BY(mutex_) = false;
};

}  // namespace ccom
