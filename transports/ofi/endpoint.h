// SPDX-License-Identifier: Apache-2.0
//
// The little of libfabric that this transport needs: reliable messages of limited size to numbered addresses, and
// writes into a peer's memory that tell it a number when they are there; both in no order. An interface, so that tests
// can put something in between.
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

// From a successful post to its completion it belongs to the provider, and so do its bytes.
struct Operation {
  fi_context2 context{};  // the provider's scratch space; its address names the operation
  OperationKind operation_kind = OperationKind::Receive;
  std::byte* data = nullptr;
  size_t size_bytes = 0;       // to send or write; of a receive, the room
  void* descriptor = nullptr;  // of the memory, for providers that ask for it
};

struct Completion {
  Operation* operation = nullptr;  // null: a peer's write has arrived, see immediate
  size_t received_bytes = 0;
  uint32_t immediate = 0;  // what came with the write
  int error = 0;           // 0 or FI_E...
  std::string reason{};    // if error: what the provider says, and its own number
};

// Memory as a peer addresses it in writes.
struct RemotePlace {
  uint64_t address = 0;
  uint64_t key = 0;
};

// Memory that operations may use as long as this lives; no longer than the endpoint.
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
  size_t sends = 0;                // sends and writes that may be posted at a time
  size_t receives = 0;             // likewise; of peers' writes, the completions there is room for
  size_t write_bytes = 0;          // 0: no writes
  bool registers_sources = false;  // what is written from must be registered
};

class Endpoint {
 public:
  virtual ~Endpoint() = default;  // afterwards the provider touches nothing; regions are unmapped
  virtual std::string address() const = 0;
  virtual Limits limits() const = 0;
  // The number of an address that the peer's address() returned.
  virtual Result<uint64_t> insert(std::string_view address) = 0;
  // Zeroed, page-aligned, fit for every use; lives as long as the endpoint.
  virtual Result<Region> allocate(size_t size_bytes) = 0;
  virtual Result<std::unique_ptr<Registration>> enroll(Bytes bytes, Use use) = 0;
  // 0, or -FI_EAGAIN: post it again after a poll(), or another negative FI_E...
  virtual int post_send(uint64_t to, Operation& operation) = 0;
  virtual int post_receive(Operation& operation) = 0;
  virtual int post_write(uint64_t to, Operation& operation, RemotePlace place, uint32_t immediate) = 0;
  // Drives the provider and appends what is complete.
  virtual Status poll(std::vector<Completion>& completions) = 0;
  // Readable when poll() may find something, provided that may_sleep() said true before; -1: there is none.
  virtual int descriptor() const = 0;
  virtual bool may_sleep() = 0;
  // Ends all that is under way: the provider touches neither registered nor posted memory any more. Only destruction,
  // of registrations too, may follow.
  virtual void shut() = 0;
};

}  // namespace ccom::ofi
