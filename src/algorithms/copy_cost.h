// SPDX-License-Identifier: Apache-2.0
//
// What loading and storing bytes costs ranks of a host, by where they lie. Pure.
#pragma once

#include <algorithm>

#include "algorithms/node_cost.h"

namespace ccom {

// Where the buffers of ranks lie, by what a call touches.
enum class Lies : uint8_t { Cached, Far, Memory };

// What bytes cost by where they are loaded from and stored to.
class Copies {
 public:
  // touched: on all ranks. is_long: of pieces that pass through memory in many tiles.
  Copies(const NodeMachine& machine, double ranks, double touched, bool is_long) : costs_(machine.costs) {
    const double cpus = machine.cpus > 0 ? std::min<double>(machine.cpus, ranks) : ranks;
    crowding_ = ranks / cpus;
    if (ranks > 1) other_cores_ = (ranks - crowding_) / (ranks - 1);
    // Of twice as much as a cache holds, what is touched next is still there or near.
    lies_ = touched / cpus < 2 * static_cast<double>(machine.cache_bytes) ? Lies::Cached
            : touched <= static_cast<double>(machine.last_cache_bytes)    ? Lies::Far
                                                                          : Lies::Memory;
    most_near_ = static_cast<double>(is_long ? 0 : machine.first_cache_bytes);
  }

  double crowding() const { return crowding_; }  // ranks on a core
  Lies lies() const { return lies_; }

  // A byte of a rank's own buffers.
  double own_load() const {
    return lies_ == Lies::Cached ? costs_.cached_load_ns
           : lies_ == Lies::Far  ? costs_.far_load_ns
                                 : costs_.memory_load_ns;
  }
  double own_store(bool streams = false) const {
    // Of what would have stayed in a cache, the user loads it from memory afterwards.
    if (streams) return costs_.streamed_store_ns + (lies_ == Lies::Cached ? costs_.memory_load_ns : 0);
    return lies_ == Lies::Cached ? costs_.cached_store_ns
           : lies_ == Lies::Far  ? costs_.far_store_ns
                                 : costs_.memory_store_ns;
  }
  // Bytes that another core has just stored, or is about to load.
  double shared_load(double bytes) const {
    return shared(bytes, costs_.shared_load_ns, costs_.long_shared_load_ns, costs_.cached_load_ns);
  }
  double shared_store(double bytes) const {
    return shared(bytes, costs_.shared_store_ns, costs_.long_shared_store_ns, costs_.cached_store_ns);
  }

 private:
  // What the first cache of the core that stored it last still holds is dear; the tiles of a long call have left it.
  double shared(double bytes, double near_ns, double long_ns, double cached_ns) const {
    const double near = std::min(bytes, most_near_);
    return other_cores_ * (near * near_ns + (bytes - near) * long_ns) + (1 - other_cores_) * bytes * cached_ns;
  }

  const MemoryCosts& costs_;
  double crowding_ = 1;
  double other_cores_ = 1;  // of the other ranks, the share on other cores
  double most_near_ = 0;
  Lies lies_ = Lies::Cached;
};

// What a byte of a message between two ranks of a host takes their cores, through memory that both reach, and one that
// a rank copies from its input to its output.
struct MessageCopies {
  double send_ns = 0, receive_ns = 0, local_ns = 0;
  double latency = 1;  // what the way to other memory domains makes of a message's
  double turn_ns = 0;  // until a receiver has its turn on a shared core
};
// touched_bytes: of all ranks' buffers in the call.
MessageCopies message_copies(const NodeMachine& machine, int ranks, double touched_bytes, double message_bytes);

}  // namespace ccom
