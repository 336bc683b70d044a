// SPDX-License-Identifier: Apache-2.0
//
// Messages between ranks that share no link: the ranks between them forward them.
//
// A transport around another one. Channels to peers that are linked are that one's own; a channel to another peer
// splits what is sent on it into pieces, and each piece goes from rank to rank along one way, so that pieces arrive in
// order. A piece is a record, which holds up to kInlineBytes, or announces a body that follows in a message of its own.
// A rank has two buffers for each lane on which pieces come to it: a piece stays in one until it is sent on, and the
// lane is not read while both are full. That ranks never wait for each other's buffers in a circle is proved for the
// lanes that `next` answers (topology/rank_routes.h), because whatever comes for the rank itself leaves at once:
//
// - a message of more than kInlineBytes is sent after its receive was posted, as after a ClearToSend;
// - shorter ones are kept until their receive is posted, which is soon: PeerProtocol always has one.
//
// Receives that may end do not end: the peer's departure is not seen beyond the next rank.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "messages/relay_wire.h"
#include "messages/routes.h"
#include "transports/transport.h"

namespace ccom {

struct RelayConfig {
  struct Next {
    Rank rank = -1;  // -1: no way
    int lane = 0;
  };
  Rank rank = -1;
  int nranks = 0;
  int lanes = 0;
  std::vector<Rank> neighbours{};       // that share a link with this rank
  std::function<Next(Rank to)> next{};  // from this rank
  std::function<size_t(Rank to, size_t message_bytes)> piece_bytes{};
  size_t most_piece_bytes = 0;
};

// Used by one thread, except wake().
class Relay final : public Transport {
 public:
  // `under` is connected, with lanes as channels MessageRoutes::kChannels and following, and outlives the relay.
  static Result<std::unique_ptr<Relay>> create(Transport& under, RelayConfig config);
  ~Relay() override;

  std::string_view name() const override { return under_.name(); }
  std::string address() const override { return under_.address(); }
  Status connect(std::span<const Peer> peers, const WaitLimit& limit) override { return under_.connect(peers, limit); }
  // To a peer that is not linked; index below MessageRoutes::kChannels.
  Result<Channel*> channel(Rank peer, int index) override;
  Status progress(Events& events) override;
  void wait(std::chrono::nanoseconds at_most) override { under_.wait(at_most); }
  void wake() override { under_.wake(); }
  bool needs_care() const override { return under_.needs_care(); }
  void care() override { under_.care(); }
  void stop() override { under_.stop(); }
  uint64_t memory_bytes() const override;

 private:
  class FarChannel;
  struct Intake;
  struct Slot;
  struct Piece;
  struct Operation;

  Relay(Transport& under, RelayConfig config);

  Result<Channel*> lane_to(Rank to) const;
  Piece& take_piece();
  FarChannel& far_channel(const RelayRecord& record) const;
  Status read(Intake& intake);
  Status on_completed(Operation& operation, Events& events);
  Status on_ended(Operation& operation);
  Status on_record(Slot& slot, Events& events);
  Status forward(Slot& slot);
  Status accept(Slot& slot, Events& events);
  Status protocol_error(Rank from, const char* what) const;

  Transport& under_;
  const RelayConfig config_;
  std::map<std::pair<Rank, int>, Channel*> lanes_;  // by neighbour and lane
  std::vector<std::unique_ptr<Intake>> intakes_;
  std::vector<std::unique_ptr<FarChannel>> channels_;  // by peer, by index
  std::vector<bool> has_left_;                         // by rank
  std::vector<std::unique_ptr<Piece>> pieces_;
  std::vector<Piece*> free_pieces_;
  Events under_events_;
  std::vector<Token> due_;  // complete, to be reported
};

}  // namespace ccom
