// SPDX-License-Identifier: Apache-2.0
//
// The endpoints that carry writes, one on each network interface that is used. Apart from the endpoint for messages, so
// that small messages never wait behind large ones, and so that stop() can take all user memory out of the provider's
// hands at once, by shutting these, while what was reported complete still goes its way.
//
// Each write is a whole fragment and goes to the rail with the fewest bytes under way: no rail waits for another, and
// one that is slower gets less. A rail that refuses for the moment is asked again; other peers' writes pass meanwhile.
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
  uint32_t landing = 0;
  uint64_t address = 0;                        // at the peer
  std::array<uint64_t, kMaxRails> keys{};      // by rail
  std::array<void*, kMaxRails> descriptors{};  // of the bytes here, by rail
  size_t rail = 0;
  bool is_busy = false;  // waiting or with the provider
};

// Memory that is registered with every rail.
using Lease = std::vector<std::unique_ptr<Registration>>;

class Rails {
 public:
  explicit Rails(std::vector<std::unique_ptr<Endpoint>> endpoints);
  size_t count() const { return endpoints_.size(); }
  const Limits& limits() const { return limits_; }  // what all can do
  std::vector<std::string> addresses() const;
  // Our numbers for a peer's rails; as many as both have.
  Result<std::vector<uint64_t>> insert(const std::vector<std::string>& addresses);
  Result<Lease> enroll(Bytes bytes, Use use);
  // Zeroed memory that peers may write into, and its keys by rail.
  Result<Bytes> allocate(size_t size_bytes);
  RemotePlace place(size_t rail) const { return places_[rail]; }

  // Takes the write; it comes back by poll(), or by on_failed at once or in flush().
  void post(WriteOperation& operation);
  void flush();
  Status poll(std::vector<Completion>& completions);
  // Forgets what waits for this peer.
  void drop(const Link& link);
  // By rail, ever.
  const std::vector<uint64_t>& written_bytes() const { return written_bytes_; }
  bool has_work() const { return under_way_ > 0 || !waiting_.empty(); }
  bool is_waiting() const { return !waiting_.empty(); }
  const std::vector<std::unique_ptr<Endpoint>>& endpoints() const { return endpoints_; }
  // Afterwards nothing is touched any more; nothing completes.
  void shut();
  bool is_shut() const { return is_shut_; }

 private:
  // False: refused.
  bool try_post(WriteOperation& operation);
  bool try_post_on(size_t rail, WriteOperation& operation);

  std::vector<std::unique_ptr<Endpoint>> endpoints_;
  Limits limits_;
  std::vector<RemotePlace> places_;
  Lease slots_lease_;  // of the slots, but for the first rail
  std::vector<uint64_t> bytes_under_way_, written_bytes_;
  std::vector<size_t> writes_under_way_;
  size_t under_way_ = 0;
  std::vector<WriteOperation*> waiting_;
  std::vector<Completion> failed_;  // posts that were refused for good, until the next poll()
  bool is_shut_ = false;
};

}  // namespace ccom::ofi
