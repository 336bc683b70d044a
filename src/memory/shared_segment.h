// SPDX-License-Identifier: Apache-2.0
//
// Memory shared by the ranks of one host, without a name anywhere: a sealed memfd, handed over a unix socket.
//
// The leader serves the descriptor from a socket in a fresh 0700 directory (removed as soon as everybody has it); both
// sides check uid and an HMAC. Size is fixed by seals, so no peer can shrink it under us. Space is taken with fallocate
// before first use: a full memory is an error, never SIGBUS.
#pragma once

#include <memory>
#include <string>

#include "base/descriptor.h"
#include "base/secret.h"
#include "base/status.h"
#include "base/types.h"
#include "base/wait_limit.h"

namespace ccom {

// A mapping of a memfd, and the descriptor. Neither copies nor moves; unmaps and closes.
class SharedSegment {
 public:
  // Creates it, zeroed. Only the first `reserve_bytes` take memory now; the rest on reserve().
  static Result<std::unique_ptr<SharedSegment>> create(size_t size_bytes, size_t reserve_bytes);
  // Maps a received descriptor after checking its size and seals. Takes ownership of fd, also on error.
  static Result<std::unique_ptr<SharedSegment>> attach(int fd, size_t size_bytes);
  SharedSegment(const SharedSegment&) = delete;
  SharedSegment& operator=(const SharedSegment&) = delete;
  ~SharedSegment();

  Bytes bytes() const { return bytes_; }
  int fd() const { return fd_; }
  // Takes memory for a range, so that touching it cannot fail. Idempotent, thread-safe, any process.
  Status reserve(size_t offset_bytes, size_t size_bytes);

 private:
  SharedSegment(int fd, Bytes bytes) : fd_(fd), bytes_(bytes) {}
  int fd_;
  Bytes bytes_;
};

// Leader's side of the hand-over.
class SegmentServer {
 public:
  static Result<std::unique_ptr<SegmentServer>> create(const Secret& key);
  virtual ~SegmentServer() = default;  // removes socket and directory
  virtual std::string path() const = 0;
  // Hands `segment` to `clients` processes or threads. Blocking. Strangers are dropped and do not count.
  virtual Status serve(const SharedSegment& segment, int clients, const WaitLimit& limit) = 0;
};

// The other side: connects to `path` and maps what it gets. Blocking.
Result<std::unique_ptr<SharedSegment>> fetch_segment(const std::string& path, size_t size_bytes, const Secret& key,
                                                     const WaitLimit& limit);
// The same in two steps, for clients that say before whether they will come: the first needs nothing of the leader.
Result<Descriptor> open_segment_client();
Result<std::unique_ptr<SharedSegment>> fetch_segment(Descriptor client, const std::string& path, size_t size_bytes,
                                                     const Secret& key, const WaitLimit& limit);

}  // namespace ccom
