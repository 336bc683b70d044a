// SPDX-License-Identifier: Apache-2.0
//
// A fabric inside one process: messages and writes are copied as soon as they are posted. A hook sees, and may change,
// whatever arrives at one of its endpoints.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "transports/ofi/endpoint.h"

namespace ccom::ofi {

class MemoryFabric {
 public:
  enum class Arrival { Message, Write, Immediate };
  // The endpoint's number, what arrives, and its bytes.
  using Hook = std::function<void(size_t endpoint, Arrival, Bytes)>;

  explicit MemoryFabric(size_t message_bytes) : message_bytes_(message_bytes) {}
  // Endpoints are numbered in the order in which they are opened; the fabric must outlive them.
  std::unique_ptr<Endpoint> open();
  // While no thread uses the endpoints.
  void set_hook(Hook hook) { hook_ = std::move(hook); }
  void cut() { is_cut_ = true; }  // posts fail from now on
  // As if an endpoint that nobody knows had sent it.
  void deliver(size_t endpoint, ConstBytes message);
  void deliver_immediate(size_t endpoint, uint32_t immediate);

 private:
  friend class MemoryEndpoint;
  struct Queue {
    std::deque<std::vector<std::byte>> messages;
    std::deque<Operation*> receives;
    std::vector<Completion> completions;
  };
  void pair_up(Queue& queue);
  const size_t message_bytes_;
  Hook hook_;
  bool is_cut_ = false;
  std::mutex mutex_;
  std::deque<Queue> queues_;
};

}  // namespace ccom::ofi
