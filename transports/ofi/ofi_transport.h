// SPDX-License-Identifier: Apache-2.0
//
// The transport over libfabric: messages with credit flow control, and remote writes for large payloads.
//
// A message is split into self-describing fragments (peer, channel, message number, offset), so ordering is not needed.
// Small fragments are copied into a send buffer, sent as one libfabric message into any of the receiver's posted
// buffers, and copied or passed to the sink from there. Large ones are written directly from the source into a slot or
// the target at the receiver (channel.h); their headers, with checksums, are sent as small messages.
//
// stop(): shuts everything that remote writes may access (rails.h); message buffers belong to the transport anyway.
// Peers are told (shutdown.cc).
//
// Memory, independent of load: each channel has `credits` (at most 8, with more than 4 rails two for each) buffers of
// 16 KiB per direction, some for messages without credit, and 4 slots of 256 KiB; all shrink when there are many
// channels. With n channels to p peers, about
//   receive (n (credits + 5) + 6 p) x 16 KiB, send n credits x 16 KiB, slots n MiB but at most 64 MiB.
// Memory is used when it is first written, except on EFA, which pins it at once.
//
// A rail may fail: what was written to it goes by another one (stranded.cc). Without the first one, which carries
// messages, or the last one, there is an error.
//
// Dead peers: sends to them fail, or the provider stays busy until a timeout (sending.cc); both are a RemoteError that
// names the peer. Who only waits for a peer sends to it now and then (probes.cc). A peer that is merely silent is
// detected by liveness, not here.
//
// fork(): the child must not use the transport; destroying it there is a no-op.
#pragma once

#include <unistd.h>

#include <memory>
#include <unordered_map>
#include <vector>

#include "transports/ofi/factory.h"
#include "transports/ofi/link.h"
#include "transports/ofi/registrations.h"

namespace ccom::ofi {

// An eventfd: written by wake(), awaited by wait().
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
  // `rails`: endpoints for writes; empty if the provider does not support them.
  static Result<std::unique_ptr<OfiTransport>> create(const OfiConfig& config, std::unique_ptr<Endpoint> endpoint,
                                                      std::vector<std::unique_ptr<Endpoint>> rails = {});
  ~OfiTransport() override;

  std::string_view name() const override { return "ofi"; }
  std::string address() const override;
  Status connect(std::span<const Peer> peers, const WaitLimit& limit) override;
  Result<Channel*> channel(Rank peer, int index) override;
  Status progress(Events& events) override;
  void wait(std::chrono::nanoseconds at_most) override;
  void wake() override { wake_.signal(); }
  void stop() override;
  uint64_t memory_bytes() const override;

  // Bytes written by each rail.
  const std::vector<uint64_t>& written_bytes() const { return rails_->written_bytes(); }
  size_t kept_registrations() const { return registrations_.kept(); }
  // Messages that failed authentication or had another destination.
  uint64_t dropped_messages() const { return dropped_; }

 private:
  OfiTransport(const OfiConfig& config, std::unique_ptr<Endpoint> endpoint,
               std::vector<std::unique_ptr<Endpoint>> rails);

  // connect.cc
  Status check_peers(std::span<const Peer> peers) const;
  Status plan_terms(std::span<const Peer> peers);
  Status add_link(const Peer& peer);
  Status greet_everybody();
  Status greet(Link& link);
  void prepare(SendOperation& operation, const HandshakeMessage& message);
  HandshakeMessage greeting_of(Link& link);
  Status on_handshake(Link& link, const HandshakeMessage& message);
  Status on_handshake_sent(const SendOperation& operation);
  Status compare_terms(const Link& link) const;
  void agree(Link& link);
  void derive_sessions(Link& link);
  Status name_missing() const;

  // buffers.cc
  void plan_slots(std::span<const Peer> peers);
  Status allocate_buffers();
  void place_operations(Bytes memory, void* descriptor);
  Status offer_slots();

  // ofi_transport.cc
  Status advance();
  Status handle(const Completion& completion);
  bool are_rails_awake() const;
  Link* find_link(Rank rank);

  // sending.cc
  Status serve_ready();
  Status serve(OfiChannel& channel);
  Status send_fragment(OfiChannel& channel, TransferMode mode);
  bool find_source(OfiChannel& channel);
  void write_piece(OfiChannel& channel, const Header& header, const Piece& piece);
  Status send_target(OfiChannel& channel, const OfiChannel::Target& target);
  Status send_control(Link& link, SendOperation& operation, Kind kind, OfiChannel* channel);
  Header make_header(Link& link, Kind kind, OfiChannel* channel) const;
  Status seal_and_post(SendOperation& operation, const Header& header, ConstBytes payload);
  Status post(SendOperation& operation);
  Status flush(Link& link);
  Status refused(Link& link);
  Status flush_waiting();
  Status on_sent(SendOperation& operation, const Completion& completion);
  Status on_wrote(WriteOperation& operation, const Completion& completion);
  Status send_failed(SendOperation& operation, const Completion& completion);

  // receiving.cc
  Status on_received(ReceiveOperation& operation, const Completion& completion);
  Status on_message(Link& link, ReceiveOperation& operation);
  Status on_data(Link& link, const Header& header, ReceiveOperation& operation);
  Status on_target(Link& link, const Header& header, ConstBytes bytes);
  Status on_written(uint32_t immediate);
  Status on_payload(const WriteTickets::Match& match);
  Status drop(ReceiveOperation& operation);
  Status drop_or_blame(ReceiveOperation& operation);
  Status damaged(const Link& link, const char* what) const;

  // stranded.cc
  bool strand(WriteOperation& operation, const Completion& completion);
  bool lose_rail(Link& link, size_t rail);
  Status look_after_stranded();
  Status ask(Link& link);
  Status answer(Link& link);
  void on_answer(Link& link, const Header& header);
  void finish(WriteOperation& write);
  void finish_stranded(Link& link);
  void drop_stranded(Link& link);

  // probes.cc
  void probe_silent_peers(Clock::time_point now);
  Status probe(Link& link);

  // shutdown.cc
  void tell_peers() noexcept;
  void take_leave();
  void shut_down();
  Status on_goodbye(Link& link, uint64_t sent);
  Status acknowledge_goodbye(Link& link);
  void mark_dead(Link& link);

  const OfiConfig config_;
  WakeDescriptor wake_;
  Board board_;
  LinkTerms terms_;          // ours for all peers; channels and slots are a link's
  size_t buffer_bytes_ = 0;  // of a send or receive buffer: header and payload
  std::vector<std::unique_ptr<Link>> links_;
  std::unordered_map<Rank, Link*> by_rank_;
  std::unique_ptr<Endpoint> endpoint_;  // declared after the operations it refers to: destroyed first
  std::unique_ptr<Rails> rails_;        // likewise
  Registrations registrations_;
  SlotTerms slot_plan_;  // per channel of a peer
  ReceivePool pool_;
  std::vector<OfiChannel*> paused_;  // have more to write; yielded to others
  std::vector<Link*> waiting_;       // their outbox was refused by the provider
  std::vector<Link*> asked_;         // have a question
  size_t stranded_ = 0;              // writes that have failed, and will be made again
  std::vector<Completion> completions_;
  uint64_t dropped_ = 0;
  size_t send_memory_bytes_ = 0, slot_memory_bytes_ = 0;
  std::chrono::nanoseconds sleep_{};  // of a wait() that only its timeout can end
  Clock::time_point look_at_{};       // for silent peers
  const pid_t process_ = getpid();
  bool is_connecting_ = false, is_connected_ = false;
};

}  // namespace ccom::ofi
