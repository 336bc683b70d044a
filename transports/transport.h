// SPDX-License-Identifier: Apache-2.0
//
// What a transport is: ordered pipes between this rank and its peers. The whole porting contract; the suite in
// tests/conformance checks every sentence of it.
//
// Common rules
// - Threads: a transport belongs to one thread at a time (the communicator's turn); it owns no threads. Only wake()
//   may be called from another one.
// - Time: post_*, progress and stop never block. connect blocks until its deadline, wait until its argument.
// - Order: a Channel is a FIFO in each direction. The k-th post_send meets the peer's k-th post_receive. Channels are
//   independent: one whose receiver is slow never holds back another, nor the other direction of the same one.
// - Buffers given to post_* stay valid and untouched by the caller until their completion is reported or stop()
// returns.
// - Completions are reported by progress() only, each exactly once, never inside post_*. A send is complete when its
//   buffer may be reused; the peer need not have received it.
// - No data is lost by the destructor: what was reported complete arrives, unless the machine or the network dies. The
//   destructor waits at most one second, and for nothing but that.
// - Errors are final: once progress() or post_* has failed the transport only accepts stop() and destruction. A Status
// names
//   the peer, if one is to blame, in peers().
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/time.h"
#include "base/types.h"

namespace ccom {

// Says which call a message belongs to. Travels in front of every message; the receiver compares it with what it
// expects before a byte of payload is delivered. Opaque to transports but for equality.
struct Envelope {
  std::array<uint64_t, 5> words{};
  friend bool operator==(const Envelope&, const Envelope&) = default;
};
static_assert(sizeof(Envelope) == 40);

// Takes received bytes where they lie, instead of a target buffer (to reduce them, without a copy in between).
class Sink {
 public:
  // `bytes` belong at `offset_bytes` of the message and are lent for the duration of the call. Pieces are disjoint,
  // cover the message exactly once, and may come in any order. Offsets and, but for the message's end, lengths are
  // multiples of 16. Called from progress(); must not call the transport.
  virtual void consume(size_t offset_bytes, ConstBytes bytes) = 0;

 protected:
  ~Sink() = default;
};

using Token = uint64_t;  // the caller's name for a posted operation

struct Send {
  Envelope envelope;
  ConstBytes payload;  // may be empty: the envelope travels alone
  Token token = 0;
};

struct Receive {
  Envelope expected;
  size_t size_bytes = 0;        // of the message; must equal what is sent
  std::byte* target = nullptr;  // either size_bytes of memory ...
  Sink* sink = nullptr;         // ... or this
  Token token = 0;
  bool may_end = false;  // the peer may leave instead, see Events::ended; then so may what is posted behind it
};

// The peer's message is not the one that is expected here: other envelope, or other size.
struct Mismatch {
  Rank peer = -1;
  Envelope expected, received;
  uint64_t expected_bytes = 0, received_bytes = 0;
};

// What progress() found. The caller clears it.
struct Events {
  std::vector<Token> completed;
  std::optional<Mismatch> mismatch;  // final, like an error; nothing of that message was delivered
  // Receives with may_end that nothing will ever come for: the peer has destroyed its transport, or has died, and all
  // that it had sent was delivered. Of others, and in the middle of a message, it is a RemoteError; or, where the
  // peer's end cannot be seen, nothing: liveness tells.
  std::vector<Token> ended;
};

class Channel {
 public:
  virtual ~Channel() = default;
  // Any number may be posted; they queue.
  virtual Status post_send(const Send& send) = 0;
  virtual Status post_receive(const Receive& receive) = 0;
};

inline constexpr int kMaxChannels = 16;  // per pair of ranks

// A rank to connect to.
struct Peer {
  Rank rank = -1;
  std::string address;  // its transport's address()
  int channels = 1;     // how many both sides will use, 1 to kMaxChannels
};

class Transport {
 public:
  virtual ~Transport() = default;
  virtual std::string_view name() const = 0;  // "shm"
  // What peers need to reach this rank: opaque bytes, at most 1 KiB.
  virtual std::string address() const = 0;
  // Connects to all peers; every one of them connects to this rank at the same time. Blocking. Called once. An error
  // names the peers that are missing. Afterwards nothing listens any more.
  virtual Status connect(std::span<const Peer> peers, Deadline deadline) = 0;
  // Owned by the transport. index < the peer's `channels`. InvalidArgument for a rank that is not connected.
  virtual Result<Channel*> channel(Rank peer, int index) = 0;
  // Moves what can be moved now and appends to `events`.
  virtual Status progress(Events& events) = 0;
  // Blocks until progress() may have something to do, wake() is called, or the time is up. May return early.
  virtual void wait(std::chrono::nanoseconds at_most) = 0;
  // Ends wait(). Thread-safe.
  virtual void wake() = 0;
  // After it returns no posted buffer or sink is touched any more; nothing posted completes. Idempotent.
  virtual void stop() = 0;
  // Buffers held by this object.
  virtual uint64_t memory_bytes() const = 0;
};

}  // namespace ccom
