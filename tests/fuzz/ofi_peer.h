// SPDX-License-Identifier: Apache-2.0
//
// For the ofi targets: an endpoint that is the whole fabric, and behind it a peer that holds the communicator's key and
// says what the input wants. What it says by default is right, so that an input can be wrong late.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "base/handshake.h"
#include "tests/fuzz/target.h"
#include "transports/ofi/endpoint.h"
#include "transports/ofi/wire.h"

namespace ccom::ofi {

inline constexpr int kFuzzChannels = 2;
inline constexpr size_t kFuzzMessageBytes = 1024, kFuzzFragmentBytes = kFuzzMessageBytes - sizeof(Header);
inline constexpr size_t kFuzzSlotBytes = 4096;

// What lies between the transport under test, which has both endpoints, and the peer.
struct Air {
  std::deque<Operation*> receives;           // posted
  std::vector<Completion> arrivals, wrote;   // not yet polled; of the message endpoint, of the rail
  std::vector<std::vector<std::byte>> sent;  // by the transport, not yet read by the peer
  std::function<Status()> meanwhile;         // runs in each poll
  bool is_cut = false;                       // posts fail

  // False if there is no buffer for it.
  bool deliver(ConstBytes message);
};

std::unique_ptr<Endpoint> open_endpoint(Air& air, bool is_rail);

class FuzzPeer {
 public:
  // The peer of rank 1 - self.
  FuzzPeer(Air& air, const Secret& key, Rank self, bool checksum);

  // Exchanges the whole handshake as it should be, one message a call.
  void greet();
  // One word of a handshake, right or wrong, new or repeated.
  void greet(fuzz::Reader& reader);
  // An authentic message, unless the input wants another one. `sizes`: of the receives posted so far, by channel.
  void say(fuzz::Reader& reader, const std::vector<size_t> (&sizes)[kFuzzChannels]);
  bool has_session() const { return session_ != 0; }

 private:
  void listen();
  void deliver(const HandshakeMessage& message);
  void find_session(const Handshake& conversation);
  Handshake start(bool connects) const;
  LinkTerms terms(uint16_t changes, fuzz::Reader* reader) const;

  Air& air_;
  const Secret key_;
  const Rank self_;
  const bool checksum_;
  std::vector<Handshake> conversations_;  // the first one is in the right role
  std::vector<HandshakeMessage> said_;    // by either side
  uint64_t session_ = 0;  // of what we send; the transport takes the first conversation that gets so far
  uint64_t heard_fragments_ = 0, said_fragments_ = 0;  // in total
  uint64_t consumed_[kFuzzChannels] = {};              // heard that need credit
  uint32_t freed_[kFuzzChannels] = {};                 // slots that were written
};

}  // namespace ccom::ofi
