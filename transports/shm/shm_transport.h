// SPDX-License-Identifier: Apache-2.0
//
// Combines the rings: which channels have work, which peers to notify, which are asleep.
//
// post_send() writes a message to its ring directly if nothing is queued before it. progress() checks only channels
// with posted work and makes neither system calls nor allocations unless a peer sleeps. A notification costs a full
// fence, so it is sent once per progress() for everything written since the last one.
//
// With a pacer a message is written when it has taken the last wire of its way, by progress() unless it has at its
// post. It counts as arrived, and as sent, only at its computed time; until then its channel holds it. progress()
// reports the events of a single point in time, the earliest, so a program that reacts after every progress() reacts in
// the order of the fabric's time. See paced.cc.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "transports/shm/factory.h"
#include "transports/shm/incoming.h"
#include "transports/shm/outgoing.h"
#include "transports/shm/pacer.h"
#include "transports/shm/post_queue.h"

namespace ccom::shm {

class ShmTransport;

// Another rank of this host, connected or not.
struct LocalPeer {
  Rank rank = -1;
  int local_rank = -1;  // local rank
  RankLines* lines = nullptr;
  bool is_scheduled = false;
};

struct PostedSend {
  Send send;
  uint64_t due_ns = 0;  // time of arrival; 0 without a pacer
};

class ShmChannel final : public Channel {
 public:
  struct Ends {
    RingView outgoing;
    size_t outgoing_offset_bytes;  // in the segment
    RingView incoming;
    bool stamped;
  };
  ShmChannel(ShmTransport& transport, LocalPeer& local_peer, const Ends& ends)
      : outgoing(ends.outgoing, ends.stamped),
        incoming(ends.incoming, ends.stamped),
        peer(local_peer),
        ring(ends.outgoing),
        ring_offset_bytes(ends.outgoing_offset_bytes),
        transport_(transport) {}

  Status post_send(const Send& send) override;
  Status post_receive(const Receive& receive) override;

  // For the transport.
  PostQueue<PostedSend> sends;
  PostQueue<Receive> receives;
  Outgoing outgoing;
  Incoming incoming;
  LocalPeer& peer;
  const RingView ring;
  const size_t ring_offset_bytes;
  bool has_ring = false;    // its memory is reserved
  bool is_held = false;     // the last message is complete, but not due
  bool is_reduced = false;  // its time of arrival is past; due_ns: when it has been reduced
  uint64_t due_ns = 0;

 private:
  ShmTransport& transport_;
};

class ShmTransport final : public Transport {
 public:
  ShmTransport(const ShmConfig& config, const Layout& layout, std::unique_ptr<Pacer> pacer);
  ~ShmTransport() override;

  std::string_view name() const override { return "shm"; }
  std::string address() const override { return "shm"; }
  Status connect(std::span<const Peer> peers, const WaitLimit& limit) override;
  Result<Channel*> channel(Rank peer, int index) override;
  Status progress(Events& events) override;
  void wait(std::chrono::nanoseconds at_most) override;
  void wake() override;
  void stop() override;
  uint64_t memory_bytes() const override;

  Status post(ShmChannel& channel, const Send& send);
  Status post(ShmChannel& channel, const Receive& receive);

 private:
  std::byte* region() const { return segment_.bytes().data() + offset_bytes_; }
  int local_rank_of(Rank rank) const;
  RankLines& my_lines() const { return layout_.rank_lines(region(), local_rank_); }
  Status check_peers(std::span<const Peer> peers) const;
  void make_channels(const Peer& peer);
  Result<std::vector<Rank>> absent(std::span<const Peer> peers) const;
  Status await_peers(std::span<const Peer> peers, const WaitLimit& limit);
  Status take_ring(ShmChannel& channel);
  Status move_incoming(ShmChannel& channel, Events& events);
  Status move_outgoing(ShmChannel& channel);
  Status end_receives(ShmChannel& channel, Events& events);
  Status lost(const ShmChannel& channel, const char* what);
  Status broken(const ShmChannel& channel);
  Status start(ShmChannel& channel, const PostedSend& posted);
  void sent(const PostedSend& posted);
  Status advance_paced();
  void report_due(uint64_t time_ns);
  bool reduce_due(uint64_t time_ns);
  uint64_t earliest_due_ns() const;
  std::chrono::nanoseconds until_due() const;
  static bool has_left(const ShmChannel& channel);
  void schedule_notification(ShmChannel& channel);
  void leave();
  void notify_all();
  bool has_work() const;

  SharedSegment& segment_;
  const size_t offset_bytes_;
  const Layout layout_;
  const int local_rank_;  // local rank of this process
  std::vector<LocalPeer> local_peers_;
  std::vector<std::unique_ptr<ShmChannel>> channels_;  // by local rank, then index; null where there is none
  std::vector<ShmChannel*> sending_, receiving_;       // have posted work
  std::vector<LocalPeer*> to_notify_;                  // to be notified of changed rings
  std::vector<Token> completed_;                       // to be reported by the next progress()
  const std::unique_ptr<Pacer> pacer_;                 // null: everything arrives at once
  std::vector<PostedSend> held_;                       // sends that are not due
  std::atomic<bool> is_woken_{false};
  bool is_connected_ = false;
  size_t rings_taken_ = 0;
  Status failure_;
};

}  // namespace ccom::shm
