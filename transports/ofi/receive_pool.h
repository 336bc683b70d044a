// SPDX-License-Identifier: Apache-2.0
//
// The posted receive buffers of an endpoint, shared by all peers. Flow control guarantees a buffer for every message in
// flight: a sender holds a credit for one of them and gets it back only when the buffer is posted again.
#pragma once

#include <cstdint>
#include <vector>

#include "transports/ofi/endpoint.h"

namespace ccom::ofi {

class OfiChannel;

struct ReceiveOperation : Operation {
  size_t received_bytes = 0;
  OfiChannel* charged = nullptr;  // whose credit it holds
  ConstBytes bytes() const { return {data, received_bytes}; }
};

class ReceivePool {
 public:
  explicit ReceivePool(Endpoint& endpoint) : endpoint_(endpoint) {}
  // Allocates `count` buffers of `buffer_bytes` and posts them. Called once.
  Status fill(size_t count, size_t buffer_bytes);
  // The buffer's bytes are no longer needed.
  Status release(ReceiveOperation& operation);
  // Posts buffers that the provider had no room for.
  Status retry();
  bool is_waiting() const { return !refused_.empty(); }
  size_t memory_bytes() const { return memory_bytes_; }

 private:
  Endpoint& endpoint_;
  std::vector<ReceiveOperation> operations_;  // never resized once posted
  std::vector<ReceiveOperation*> refused_;
  size_t memory_bytes_ = 0;
};

}  // namespace ccom::ofi
