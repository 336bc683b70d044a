// SPDX-License-Identifier: Apache-2.0
//
// Memory shared by the ranks of one host, without a name anywhere: a sealed memfd, handed over a unix socket.
//
// The leader serves the descriptor from a socket in a fresh 0700 directory (removed as soon as everybody has it); both
// sides check uid and an HMAC. Size is fixed by seals, so no peer can shrink it under us. Space is taken with fallocate
// before first use: a full memory is an error, never SIGBUS.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/descriptor.h"
#include "base/secret.h"
#include "base/status.h"
#include "base/types.h"
#include "base/wait_limit.h"

namespace ccom {

// A file that a process has open, and shows to others of its user.
struct ShownFile {
  int pid = 0;
  int descriptor = -1;
  uint64_t inode = 0;

  // Of a descriptor of this process; nothing if others may not open it.
  static std::optional<ShownFile> of(int fd);
  // An error if that process has ended, or has something else there by now.
  Result<Descriptor> open() const;
};

// A mapping of a memfd, and its descriptor, unless another process shows it: it is opened again when somebody asks for
// it, and kept from then on. Neither copies nor moves; unmaps and closes. Thread-safe.
class SharedSegment {
 public:
  // Creates it, zeroed. Only the first `reserve_bytes` take memory now; the rest on reserve().
  static Result<std::unique_ptr<SharedSegment>> create(size_t size_bytes, size_t reserve_bytes);
  // Maps a received descriptor after checking its size and seals. Takes ownership of fd, also on error.
  static Result<std::unique_ptr<SharedSegment>> attach(int fd, size_t size_bytes);
  // Maps one that another process shows, and keeps no descriptor.
  static Result<std::unique_ptr<SharedSegment>> attach(const ShownFile& file, size_t size_bytes);
  SharedSegment(const SharedSegment&) = delete;
  SharedSegment& operator=(const SharedSegment&) = delete;
  ~SharedSegment();

  Bytes bytes() const { return bytes_; }
  // -1: it cannot be opened again.
  int fd() const;
  // Takes memory for a range, so that touching it cannot fail. Idempotent, thread-safe, any process.
  Status reserve(size_t offset_bytes, size_t size_bytes);

 private:
  SharedSegment(int fd, Bytes bytes, const ShownFile& shown = {}) : fd_(fd), shown_(shown), bytes_(bytes) {}
  Result<int> file() const;

  mutable std::atomic<int> fd_;  // -1: shown_ names it
  const ShownFile shown_;
  const Bytes bytes_;
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
