// SPDX-License-Identifier: Apache-2.0
//
// The endpoints for remote writes, one per network interface in use. Separate from the message endpoint, so that small
// messages never queue behind large ones, and so that stop() can revoke the provider's access to user memory at once by
// shutting them down, while data reported complete is still delivered.
//
// Each write is one fragment and uses, of the rails that its peer has not lost (stranded.cc), that with the fewest
// outstanding bytes, of equal ones that which has written least: no rail waits for another, a slower one gets less, and
// equal ones share. A busy rail is retried; writes to other peers proceed meanwhile.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "transports/ofi/endpoint.h"
#include "transports/ofi/wire.h"

namespace ccom::ofi {

struct Link;
class OfiChannel;

struct WriteOperation : Operation {
  Link* link = nullptr;
  OfiChannel* channel = nullptr;
  uint64_t message = 0;
  uint64_t offset_bytes = 0;  // in the message
  uint32_t immediate = 0;
  uint64_t address = 0;                        // remote
  std::array<uint64_t, kMaxRails> keys{};      // per rail
  std::array<void*, kMaxRails> descriptors{};  // of the local bytes, per rail
  size_t rail = 0;
  bool is_busy = false;  // queued or with the provider
};

// Memory registered with every rail.
using Lease = std::vector<std::unique_ptr<Registration>>;

class Rails {
 public:
  explicit Rails(std::vector<std::unique_ptr<Endpoint>> endpoints);
  size_t count() const { return endpoints_.size(); }
  const Limits& limits() const { return limits_; }  // supported by all rails
  std::vector<std::string> addresses() const;
  // Our numbers for a peer's rails; as many as both have.
  Result<std::vector<uint64_t>> insert(const std::vector<std::string>& addresses);
  Result<Lease> enroll(Bytes bytes, Use use);
  // Zeroed memory that peers may write into, and its keys per rail.
  Result<Bytes> allocate(size_t size_bytes);
  RemotePlace place(size_t rail) const { return places_[rail]; }

  // Takes the write; it is returned by poll(), or by on_failed at once or in flush().
  void post(WriteOperation& operation);
  void flush();
  Status poll(std::vector<Completion>& completions);
  // Drops the queued writes to this peer.
  void drop(const Link& link);
  // Per rail, in total.
  const std::vector<uint64_t>& written_bytes() const { return written_bytes_; }
  bool has_work() const { return under_way_ > 0 || !waiting_.empty(); }
  bool is_waiting() const { return !waiting_.empty(); }
  const std::vector<std::unique_ptr<Endpoint>>& endpoints() const { return endpoints_; }
  // Afterwards no memory is accessed and nothing completes.
  void shut();
  bool is_shut() const { return is_shut_; }

 private:
  // False: the provider is busy.
  bool try_post(WriteOperation& operation);
  bool try_post_on(size_t rail, WriteOperation& operation);

  std::vector<std::unique_ptr<Endpoint>> endpoints_;
  Limits limits_;
  std::vector<RemotePlace> places_;
  Lease slots_lease_;  // of the slots, except on the first rail
  std::vector<uint64_t> bytes_under_way_, written_bytes_;
  std::vector<size_t> writes_under_way_;
  size_t under_way_ = 0;
  std::vector<WriteOperation*> waiting_;
  std::vector<Completion> failed_;  // posts that failed, until the next poll()
  bool is_shut_ = false;
};

}  // namespace ccom::ofi
