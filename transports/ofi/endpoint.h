// SPDX-License-Identifier: Apache-2.0
//
// The little of libfabric that this transport needs: reliable messages of limited size to numbered addresses, in no
// order. An interface, so that tests can put something in between that reorders and refuses as EFA does; no provider
// that runs on loopback does that.
#pragma once

#include <rdma/fabric.h>

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/types.h"

namespace ccom::ofi {

// A send or a receive. From a successful post to its completion it belongs to the provider, and so do its bytes.
struct Operation {
  fi_context2 context{};  // the provider's scratch space; its address names the operation
  bool is_send = false;
  std::byte* data = nullptr;
  size_t size_bytes = 0;       // to send; of a receive, the room
  void* descriptor = nullptr;  // of the memory, for providers that ask for it
};

struct Completion {
  Operation* operation = nullptr;
  size_t received_bytes = 0;
  int error = 0;       // 0 or FI_E...
  std::string reason;  // the provider's words, if error
};

// Memory that operations may use, and its descriptor.
struct Region {
  Bytes bytes;
  void* descriptor = nullptr;
};

struct Limits {
  size_t message_bytes = 0;
  size_t sends = 0;     // that may be posted at a time
  size_t receives = 0;  // likewise
};

class Endpoint {
 public:
  virtual ~Endpoint() = default;  // afterwards the provider touches nothing; regions are unmapped
  virtual std::string address() const = 0;
  virtual Limits limits() const = 0;
  // The number of an address that the peer's address() returned.
  virtual Result<uint64_t> insert(std::string_view address) = 0;
  // Zeroed, page-aligned, fit for sending and receiving; lives as long as the endpoint.
  virtual Result<Region> allocate(size_t size_bytes) = 0;
  // 0, or -FI_EAGAIN: post it again after a poll(), or another negative FI_E...
  virtual int post_send(uint64_t to, Operation& operation) = 0;
  virtual int post_receive(Operation& operation) = 0;
  // Drives the provider and appends what is complete.
  virtual Status poll(std::vector<Completion>& completions) = 0;
  // Sleeps until poll() may find something, wake_fd is readable, or the time is up. May return early.
  virtual void wait(std::chrono::nanoseconds at_most, int wake_fd) = 0;
};

}  // namespace ccom::ofi
