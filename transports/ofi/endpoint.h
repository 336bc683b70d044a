// SPDX-License-Identifier: Apache-2.0
//
// The subset of libfabric that this transport needs: reliable, unordered messages of limited size to numbered
// addresses, and writes into a peer's memory that deliver an immediate value on completion. An interface, so that tests
// can replace it.
#pragma once

#include <rdma/fabric.h>

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/types.h"

namespace ccom::ofi {

enum class OperationKind : uint8_t { Receive, Send, Write };

// From a successful post until its completion, the operation and its bytes belong to the provider.
struct Operation {
  fi_context2 context{};  // the provider's scratch space; its address identifies the operation
  OperationKind operation_kind = OperationKind::Receive;
  std::byte* data = nullptr;
  size_t size_bytes = 0;       // to send or write; for a receive, the capacity
  void* descriptor = nullptr;  // of the memory, if the provider needs one
};

struct Completion {
  Operation* operation = nullptr;  // null: a peer's write has arrived, see `immediate`
  size_t received_bytes = 0;
  uint32_t immediate = 0;  // delivered with the write
  int error = 0;           // 0 or FI_E...
  std::string reason{};    // if error: the provider's text and number
};

// Remote memory as addressed by writes.
struct RemotePlace {
  uint64_t address = 0;
  uint64_t key = 0;
};

// Registered memory; valid while this object lives, at most as long as the endpoint.
class Registration {
 public:
  virtual ~Registration() = default;
  virtual void* descriptor() const = 0;
  virtual RemotePlace place() const = 0;  // of its first byte
};
enum class Use : uint8_t { Source, Target };  // of writes

// The same, allocated by the endpoint.
struct Region {
  Bytes bytes;
  void* descriptor = nullptr;
  RemotePlace place{};
};

struct Limits {
  size_t message_bytes = 0;
  size_t sends = 0;                // concurrent sends and writes
  size_t receives = 0;             // concurrent receives, and completions of peers' writes
  size_t write_bytes = 0;          // 0: no writes
  bool registers_sources = false;  // source buffers of writes must be registered
};

class Endpoint {
 public:
  virtual ~Endpoint() = default;  // afterwards the provider accesses nothing; regions are unmapped
  virtual std::string address() const = 0;
  virtual Limits limits() const = 0;
  // The number for an address returned by the peer's address().
  virtual Result<uint64_t> insert(std::string_view address) = 0;
  // Zeroed, page-aligned, usable for all operations; lives as long as the endpoint.
  virtual Result<Region> allocate(size_t size_bytes) = 0;
  virtual Result<std::unique_ptr<Registration>> enroll(Bytes bytes, Use use) = 0;
  // 0; -FI_EAGAIN: post again after a poll(); or another negative FI_E...
  virtual int post_send(uint64_t to, Operation& operation) = 0;
  virtual int post_receive(Operation& operation) = 0;
  virtual int post_write(uint64_t to, Operation& operation, RemotePlace place, uint32_t immediate) = 0;
  // Drives the provider and appends completed operations.
  virtual Status poll(std::vector<Completion>& completions) = 0;
  // Readable when poll() may have work, provided that may_sleep() has returned true before; -1: not available.
  virtual int descriptor() const = 0;
  virtual bool may_sleep() = 0;
  // Aborts all operations: afterwards the provider accesses neither registered nor posted memory. Only destruction may
  // follow, of registrations too.
  virtual void shut() = 0;
};

}  // namespace ccom::ofi
