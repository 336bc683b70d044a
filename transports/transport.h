// SPDX-License-Identifier: Apache-2.0
//
// The transport interface: ordered pipes between this rank and its peers. This is the complete porting contract; the
// suite in tests/conformance checks all of it.
//
// Common rules
// - Threads: a transport is used by one thread at a time and owns no threads. Only wake() and care() may be called from
//   another thread.
// - Blocking: post_*, progress and stop never block. connect blocks until its deadline, wait until its argument.
// - Order: a Channel is a FIFO in each direction. The k-th post_send matches the peer's k-th post_receive. Channels are
//   independent: a slow receiver on one never blocks another, nor the other direction of its own.
// - Buffers given to post_* must stay valid and unmodified until their completion is reported or stop() returns.
// - Completions are reported by progress() only, each exactly once, never inside post_*. A send is complete when its
//   buffer may be reused; the peer may not have received it yet.
// - The destructor loses no data: everything reported complete arrives, unless a machine or the network fails. It waits
//   at most one second for that; longer only to replace a rail that has fallen silent.
// - Errors are final: once progress() or post_* has failed, the transport accepts only stop() and destruction.
//   Status::peers() names the peer if one is to blame.
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
#include "base/types.h"
#include "base/wait_limit.h"

namespace ccom {

// Identifies the call that a message belongs to. Sent with every message; the receiver compares it with the expected
// one before any payload is delivered. Opaque to transports except for equality.
struct Envelope {
  std::array<uint64_t, 5> words{};
  friend bool operator==(const Envelope&, const Envelope&) = default;
};
static_assert(sizeof(Envelope) == 40);

// Consumes received data in place, instead of a target buffer (for example to reduce without an intermediate copy).
class Sink {
 public:
  // `bytes`, at `offset_bytes` of the message, are valid during the call only. Pieces are disjoint, cover the message
  // exactly once and may arrive in any order. Offsets, and lengths except at the message's end, are multiples of 16.
  // Called from progress(); must not call the transport.
  virtual void consume(size_t offset_bytes, ConstBytes bytes) = 0;

 protected:
  ~Sink() = default;
};

using Token = uint64_t;  // the caller's identifier of a posted operation

struct Send {
  Envelope envelope;
  ConstBytes payload;  // may be empty: only the envelope is sent
  Token token = 0;
};

struct Receive {
  Envelope expected;
  size_t size_bytes = 0;        // of the message; must equal the sender's
  std::byte* target = nullptr;  // either size_bytes of memory ...
  Sink* sink = nullptr;         // ... or this
  Token token = 0;
  bool may_end = false;  // the peer may leave instead (see Events::ended), also for receives posted after this one
};

// The peer's message differs from the expected one in envelope or size.
struct Mismatch {
  Rank peer = -1;
  Envelope expected, received;
  uint64_t expected_bytes = 0, received_bytes = 0;
};

// Results of progress(). Cleared by the caller.
struct Events {
  std::vector<Token> completed;
  std::optional<Mismatch> mismatch;  // final, like an error; nothing of that message was delivered
  // Receives with may_end that can never complete: the peer has stopped or destroyed its transport or died, and
  // everything it sent was delivered. For other receives, and in the middle of a message, that is a RemoteError; or,
  // where the transport cannot detect the peer's end, nothing: failure detection does.
  std::vector<Token> ended;
};

class Channel {
 public:
  virtual ~Channel() = default;
  // Any number may be posted; they are queued.
  virtual Status post_send(const Send& send) = 0;
  virtual Status post_receive(const Receive& receive) = 0;
};

inline constexpr int kMaxChannels = 16;  // per pair of ranks

// A rank to connect to.
struct Peer {
  Rank rank = -1;
  std::string address;  // address() of its transport
  int channels = 1;     // used by both sides, 1 to kMaxChannels
};

class Transport {
 public:
  virtual ~Transport() = default;
  virtual std::string_view name() const = 0;  // "shm"
  // What peers need to connect to this rank: opaque bytes, at most 1 KiB.
  virtual std::string address() const = 0;
  // Connects to all peers, each of which connects to this rank at the same time. Blocks. Called once. Errors name the
  // missing peers. Afterwards no listener is left. A transport that was made to connect on use returns at once:
  // channels are connected by progress() of both sides once both have asked for them, and listeners exist only
  // meanwhile.
  virtual Status connect(std::span<const Peer> peers, const WaitLimit& limit) = 0;
  // Owned by the transport. index < the peer's `channels`. InvalidArgument for a rank that is not connected. Does not
  // block.
  virtual Result<Channel*> channel(Rank peer, int index) = 0;
  // Makes progress without blocking and appends to `events`.
  virtual Status progress(Events& events) = 0;
  // Blocks until progress() may have work, wake() is called, or the timeout has passed. May return early.
  virtual void wait(std::chrono::nanoseconds at_most) = 0;
  // Ends wait(). Thread-safe.
  virtual void wake() = 0;
  // What must go on while nobody makes progress, as sending again what a lost rail has swallowed although the send is
  // complete. Called a few times a second from connect() until destruction, where needs_care(). Thread-safe.
  virtual bool needs_care() const { return false; }
  virtual void care() {}
  // After it returns, no posted buffer or sink is accessed and nothing posted completes. Peers see this rank's end as
  // if this object had been destroyed, if they can be told without waiting for them. Idempotent. Needs no memory.
  virtual void stop() = 0;
  // Buffers held by this object.
  virtual uint64_t memory_bytes() const = 0;
};

}  // namespace ccom
