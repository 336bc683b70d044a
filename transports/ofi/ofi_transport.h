// SPDX-License-Identifier: Apache-2.0
//
// The transport over libfabric: fragments through bounce buffers at both ends, under credits.
//
// A message is cut into fragments that say where they belong (peer, channel, message number, offset). Each is copied
// into a send buffer, travels as one libfabric message into any of the receiver's posted buffers, and is copied, or
// given to the sink, from there. So user memory is never the provider's, order does not matter, and stop() is
// immediate. Zero-copy writes into the target are for later, under this same protocol.
//
// Memory, whatever is posted: each channel has `credits` (at most 8) buffers of 16 KiB in either direction, and there
// are some for messages that need no credit. With n channels to p peers, about
//   receive (n (credits + 3) + 6 p) x 16 KiB, send n credits x 16 KiB: 400 KiB for a peer with one channel.
// Where the provider's queues are too short for 8 credits there are fewer, down to 1.
//
// A dead peer: sends to it fail, or the provider refuses them until we lose patience (sending.cc); either is a
// RemoteError that names it. A peer that merely goes silent is found by liveness, not here.
#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "transports/ofi/factory.h"
#include "transports/ofi/hello.h"
#include "transports/ofi/link.h"

namespace ccom::ofi {

// An eventfd: what wake() writes and wait() sleeps on.
class WakeDescriptor {
 public:
  WakeDescriptor() = default;
  WakeDescriptor(const WakeDescriptor&) = delete;
  WakeDescriptor& operator=(const WakeDescriptor&) = delete;
  ~WakeDescriptor();
  Status open();
  int fd() const { return fd_; }
  void signal();
  void clear();

 private:
  int fd_ = -1;
};

class OfiTransport final : public Transport {
 public:
  static Result<std::unique_ptr<OfiTransport>> create(const OfiConfig& config, std::unique_ptr<Endpoint> endpoint);
  ~OfiTransport() override;

  std::string_view name() const override { return "ofi"; }
  std::string address() const override { return endpoint_->address(); }
  Status connect(std::span<const Peer> peers, Deadline deadline) override;
  Result<Channel*> channel(Rank peer, int index) override;
  Status progress(Events& events) override;
  void wait(std::chrono::nanoseconds at_most) override;
  void wake() override { wake_.signal(); }
  void stop() override;
  uint64_t memory_bytes() const override;

  // Messages that did not prove to come from a peer, or were meant for somebody else.
  uint64_t dropped_messages() const { return dropped_; }

 private:
  OfiTransport(const OfiConfig& config, std::unique_ptr<Endpoint> endpoint);

  // connect.cc
  Status check_peers(std::span<const Peer> peers) const;
  Status plan_terms(std::span<const Peer> peers);
  Status add_link(const Peer& peer);
  Status allocate_buffers();
  Status greet_everybody();
  Status greet(Link& link);
  Status on_greeting(Link& link, ConstBytes bytes);
  Status on_welcome(Link& link, const Greeting& greeting);
  void derive_sessions(Link& link);
  Status name_missing() const;

  // ofi_transport.cc
  Status advance();
  Status handle(const Completion& completion);
  Link* find_link(Rank rank);

  // sending.cc
  Status serve_ready();
  Status serve(OfiChannel& channel);
  Status send_fragment(OfiChannel& channel);
  Status send_control(Link& link, SendOperation& operation, Kind kind, OfiChannel* channel);
  Header make_header(Link& link, Kind kind, OfiChannel* channel) const;
  Status seal_and_post(SendOperation& operation, const Header& header, ConstBytes payload);
  Status post(SendOperation& operation);
  Status flush(Link& link);
  Status refused(Link& link);
  Status flush_waiting();
  Status on_sent(SendOperation& operation, const Completion& completion);
  Status send_failed(SendOperation& operation, int error, std::string_view reason);

  // receiving.cc
  Status on_received(ReceiveOperation& operation, const Completion& completion);
  Status on_message(Link& link, ReceiveOperation& operation);
  Status on_data(Link& link, const Header& header, ReceiveOperation& operation);
  Status drop(ReceiveOperation& operation);

  // farewell.cc
  void farewell();
  Status on_goodbye(Link& link, uint64_t sent);
  Status acknowledge_farewell(Link& link);
  void bury(Link& link);

  const OfiConfig config_;
  const Greeter greeter_;
  WakeDescriptor wake_;
  Board board_;
  Greeting terms_;           // ours
  size_t buffer_bytes_ = 0;  // of a send or receive buffer: header and payload
  std::vector<std::unique_ptr<Link>> links_;
  std::unordered_map<Rank, Link*> by_rank_;
  std::unique_ptr<Endpoint> endpoint_;  // after what its operations point into: destroyed first
  ReceivePool pool_;
  std::vector<Link*> waiting_;  // have an outbox that the provider refused
  std::vector<Completion> completions_;
  uint64_t dropped_ = 0;
  size_t send_memory_bytes_ = 0;
  bool is_connecting_ = false, is_connected_ = false;
};

}  // namespace ccom::ofi
