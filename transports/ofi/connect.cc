// SPDX-License-Identifier: Apache-2.0
//
// Connecting: buffers are posted first, then everybody is greeted at once; see hello.h for the handshake. A greeting
// that the provider could not deliver (the peer is not up yet) is sent again.
#include <rdma/fi_errno.h>

#include <algorithm>
#include <cstring>

#include "transports/ofi/errors.h"
#include "transports/ofi/ofi_transport.h"

namespace ccom::ofi {
namespace {

// Header and payload. What rxm still copies eagerly (FI_OFI_RXM_BUFFER_SIZE); beyond, it lets the receiver fetch the
// payload, so that a sender could not leave while the receiver sleeps.
constexpr size_t kMaxMessageBytes = 16 * 1024;
constexpr size_t kMinMessageBytes = 1024;
constexpr size_t kMaxCredits = 8;
// Per channel, for Grants, which need no credit: each is about half of the credits, and goes when the one before it is
// out; so two may be unread, and one more is for luck.
constexpr size_t kGrantBuffers = 3;
constexpr size_t kGreetingBuffers = 6;  // per peer: Hello, Welcome, their repetitions, Goodbye, Acknowledge
constexpr size_t kControlSends = 4;     // per peer: Hello, Welcome, Goodbye, Acknowledge
constexpr size_t kControlBytes = 128;   // of one of them
static_assert(sizeof(Header) <= kControlBytes && sizeof(Greeting) <= kControlBytes);

// While greetings fly, so that repetitions are punctual.
constexpr auto kConnectSlice = std::chrono::milliseconds(5);

}  // namespace

Status OfiTransport::connect(std::span<const Peer> peers, Deadline deadline) {
  if (std::exchange(is_connecting_, true)) return error(Code::InvalidUsage, "connect: called twice");
  CCOM_TRY(check_peers(peers));
  CCOM_TRY(plan_terms(peers));
  for (const Peer& peer : peers) CCOM_TRY(add_link(peer));
  CCOM_TRY(allocate_buffers());
  const auto connected = [](const auto& link) { return link->is_connected(); };
  while (!std::ranges::all_of(links_, connected)) {
    if (deadline.passed()) return name_missing();
    CCOM_TRY(greet_everybody());
    CCOM_TRY(advance());
    wait(std::min<std::chrono::nanoseconds>(kConnectSlice, deadline.left()));
  }
  is_connected_ = true;
  return Status::ok();
}

Status OfiTransport::check_peers(std::span<const Peer> peers) const {
  std::vector<Rank> ranks;
  for (const Peer& peer : peers) {
    if (peer.rank < 0 || peer.rank == config_.rank || peer.channels < 1 || peer.channels > kMaxChannels) {
      return error(Code::InvalidArgument, "connect rank %d: peer %d with %d channels", config_.rank, peer.rank,
                   peer.channels);
    }
    ranks.push_back(peer.rank);
  }
  std::ranges::sort(ranks);
  if (const auto twin = std::ranges::adjacent_find(ranks); twin != ranks.end()) {
    return error(Code::InvalidArgument, "connect rank %d: peer %d is named twice", config_.rank, *twin);
  }
  return Status::ok();
}

// As many credits as the provider's queues have room for.
Status OfiTransport::plan_terms(std::span<const Peer> peers) {
  if (peers.empty()) return Status::ok();
  const Limits limits = endpoint_->limits();
  buffer_bytes_ = std::min(kMaxMessageBytes, limits.message_bytes) / 16 * 16;
  if (buffer_bytes_ < kMinMessageBytes) {
    return error(Code::NotSupported, "libfabric provider %s: messages of %zu bytes are too short",
                 config_.provider.c_str(), limits.message_bytes);
  }
  size_t channels = 0;
  for (const Peer& peer : peers) channels += static_cast<size_t>(peer.channels);
  const size_t queue = std::min(limits.sends, limits.receives);
  const size_t fixed = channels * kGrantBuffers + peers.size() * kGreetingBuffers;
  const size_t credits = queue > fixed ? std::min(kMaxCredits, (queue - fixed) / channels) : 0;
  if (credits == 0) {
    return error(Code::NotSupported, "libfabric provider %s: queues of %zu operations are too short for %zu peers",
                 config_.provider.c_str(), queue, peers.size());
  }
  terms_.credits = static_cast<uint32_t>(credits);
  terms_.fragment_bytes = static_cast<uint32_t>(buffer_bytes_ - sizeof(Header));
  return Status::ok();
}

Status OfiTransport::add_link(const Peer& peer) {
  auto address = endpoint_->insert(peer.address);
  if (!address)
    return std::move(address).error().in("connect to rank " + std::to_string(peer.rank)).with_peers({peer.rank});
  auto link = std::make_unique<Link>();
  link->rank = peer.rank;
  link->address = *address;
  link->nonce = draw_nonce();
  for (int i = 0; i < peer.channels; ++i) {
    const auto index = static_cast<uint8_t>(i);
    link->channels.push_back(std::make_unique<OfiChannel>(board_, *link, peer.rank, index, terms_.credits));
  }
  by_rank_.emplace(peer.rank, link.get());
  links_.push_back(std::move(link));
  return Status::ok();
}

Status OfiTransport::allocate_buffers() {
  if (links_.empty()) return Status::ok();
  size_t channels = 0;
  for (const auto& link : links_) channels += link->channels.size();
  const size_t credits = terms_.credits;
  CCOM_TRY(pool_.fill(channels * (credits + kGrantBuffers) + links_.size() * kGreetingBuffers, buffer_bytes_));
  const size_t small = channels + links_.size() * kControlSends;
  CCOM_TRY_ASSIGN(const Region region, endpoint_->allocate(channels * credits * buffer_bytes_ + small * kControlBytes));
  send_memory_bytes_ = region.bytes.size();
  std::byte* next = region.bytes.data();
  const auto place = [&next, &region](SendOperation& operation, Link& link, OfiChannel* channel, size_t size_bytes) {
    operation.is_send = true;
    operation.data = next;
    operation.descriptor = region.descriptor;
    operation.link = &link;
    operation.channel = channel;
    next += size_bytes;
  };
  for (const auto& link : links_) {
    link->slots.resize(link->channels.size() * credits);
    for (size_t i = 0; i < link->slots.size(); ++i) {
      OfiChannel* channel = link->channels[i / credits].get();
      place(link->slots[i], *link, channel, buffer_bytes_);
      channel->free_slots.push_back(&link->slots[i]);
    }
  }
  for (const auto& link : links_) {
    for (SendOperation* operation : {&link->hello, &link->welcome, &link->goodbye, &link->acknowledge}) {
      place(*operation, *link, nullptr, kControlBytes);
    }
    for (const auto& channel : link->channels) place(channel->grant, *link, channel.get(), kControlBytes);
  }
  return Status::ok();
}

Status OfiTransport::greet_everybody() {
  for (const auto& link : links_) {
    if (Clock::now() >= link->greet_at) CCOM_TRY(greet(*link));
  }
  return Status::ok();
}

Status OfiTransport::greet(Link& link) {
  const auto send = [this](SendOperation& operation, const Greeting& greeting) {
    std::memcpy(operation.data, &greeting, sizeof(greeting));
    operation.size_bytes = sizeof(greeting);
    operation.kind = greeting.prefix.kind;
    return post(operation);
  };
  if (link.hello_due && !link.hello.is_busy) {
    link.hello_due = false;
    CCOM_TRY(send(link.hello, greeter_.hello(link.rank, link.nonce)));
  }
  if (link.welcome_due && !link.welcome.is_busy) {
    link.welcome_due = false;
    Greeting terms = terms_;
    terms.channels = static_cast<uint32_t>(link.channels.size());
    CCOM_TRY(send(link.welcome, greeter_.welcome(link.rank, link.nonce, link.peer_nonce, terms)));
  }
  return Status::ok();
}

Status OfiTransport::on_greeting(Link& link, ConstBytes bytes) {
  const auto greeting = bytes.size() == sizeof(Greeting) ? read_as<Greeting>(bytes) : Greeting{};
  if (!greeter_.is_genuine(greeting)) {
    ++dropped_;
    return Status::ok();
  }
  if (greeting.prefix.kind == Kind::Welcome) return on_welcome(link, greeting);
  if (link.has_terms && greeting.nonce != link.peer_nonce) {  // an old Hello, played again
    ++dropped_;
    return Status::ok();
  }
  link.peer_nonce = greeting.nonce;
  derive_sessions(link);
  link.welcome_due = true;
  return greet(link);
}

Status OfiTransport::on_welcome(Link& link, const Greeting& greeting) {
  if (greeting.echo != link.nonce || link.has_terms) {
    if (greeting.echo != link.nonce) ++dropped_;
    return Status::ok();
  }
  if (greeting.channels != link.channels.size()) {
    return error(Code::ConfigError, "rank %d uses %u channels to rank %d, which expects %zu", link.rank,
                 greeting.channels, config_.rank, link.channels.size())
        .with_peers({link.rank});
  }
  if (greeting.credits < 1 || greeting.credits > kMaxCredits || greeting.fragment_bytes % 16 != 0 ||
      greeting.fragment_bytes < kMinMessageBytes - sizeof(Header)) {
    return error(Code::TransportError, "rank %d offers %u credits of %u bytes", link.rank, greeting.credits,
                 greeting.fragment_bytes)
        .with_peers({link.rank});
  }
  link.peer_nonce = greeting.nonce;
  derive_sessions(link);
  const uint32_t fragment_bytes = std::min(terms_.fragment_bytes, greeting.fragment_bytes);
  for (const auto& channel : link.channels) channel->agree(greeting.credits, fragment_bytes);
  link.has_terms = true;
  return Status::ok();
}

void OfiTransport::derive_sessions(Link& link) {
  link.session_out = greeter_.session(config_.rank, link.nonce, link.rank, link.peer_nonce);
  link.session_in = greeter_.session(link.rank, link.peer_nonce, config_.rank, link.nonce);
}

Status OfiTransport::name_missing() const {
  std::string names, reasons;
  std::vector<int> missing;
  for (const auto& link : links_) {
    if (link->is_connected()) continue;
    missing.push_back(link->rank);
    names += (names.empty() ? "" : ", ") + std::to_string(link->rank);
    if (link->last_error != 0 && reasons.empty()) {
      reasons = std::string("; rank ") + std::to_string(link->rank) + ": " + fi_strerror(link->last_error);
    }
  }
  if (dropped_ > 0) reasons += "; " + std::to_string(dropped_) + " messages came that were not from this job's ranks";
  std::ranges::sort(missing);
  return error(Code::Timeout, "connect rank %d over libfabric (%s): no answer from rank %s%s", config_.rank,
               config_.provider.c_str(), names.c_str(), reasons.c_str())
      .with_peers(std::move(missing));
}

}  // namespace ccom::ofi
