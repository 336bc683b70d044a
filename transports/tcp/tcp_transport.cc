// SPDX-License-Identifier: Apache-2.0
#include "transports/tcp/tcp_transport.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "transports/tcp/peer_address.h"

namespace ccom::tcp {
namespace {

// Up to this number every line with posted operations is polled by each progress(); above, only those reported by the
// reactor.
constexpr size_t kDirectLines = 16;
constexpr int kMaxStreams = 16;
constexpr int kSilenceChecks = 16;  // silence checks per silence timeout
// Between looks at channels that are being connected on use.
constexpr std::chrono::nanoseconds kConnectSlice{1'000'000};
// How long who waits for nothing but acknowledgements sleeps: at first, and at most.
constexpr std::chrono::microseconds kFirstSleep{50}, kLongestSleep{1000};

Status compare(const char* what, size_t mine, size_t theirs, Rank peer) {
  if (mine == theirs) return Status::ok();
  return error(Code::ConfigError, "%s: %zu on this rank, %zu on rank %d", what, mine, theirs, peer)
      .with_peers({peer})
      .with_cure("set the same CCOM_* variables and arguments on every rank");
}

// The kernel takes back a port of its own choice when a socket stops listening, so it is asked for by number.
Result<Descriptor> keep_port(const std::string& ip, const PortRange& ports) {
  while (true) {
    CCOM_TRY_ASSIGN(Descriptor kept, keep_port_at(ip, ports));
    if (!ports.is_any()) return kept;
    const uint16_t port = local_endpoint(kept.get()).port();
    kept = Descriptor();
    Result<Descriptor> again = keep_port_at(ip, {port, port});
    if (again || again.error().sys_errno() != EADDRINUSE) return again;
  }
}

// Every interface gets at least one connection.
int streams_of(const TcpConfig& config) {
  return std::max(config.streams, static_cast<int>(config.bind_addresses.size()));
}

}  // namespace

Status library_error(const char* action, const std::exception& thrown) {
  const bool lacks_memory = dynamic_cast<const std::bad_alloc*>(&thrown) != nullptr;
  if (lacks_memory) return error(Code::OutOfMemory, "%s: ran out of memory", action);
  return error(Code::SystemError, "%s: %s", action, thrown.what());
}

TcpTransport::TcpTransport(const TcpConfig& config)
    : self_{.rank = config.rank,
            .communicator = config.communicator,
            .key = config.key.derive("ccom tcp hello"),
            .streams = streams_of(config),
            .crc = config.crc && !config.tls},
      tls_key_(config.key.derive("ccom tcp tls")),
      options_{.silence = config.silence, .short_queue = config.bind_addresses.size() > 1},
      on_use_(config.on_use),
      local_ranks_(config.local_ranks),
      shared_(grid_bytes(streams_of(config)), options_.short_queue) {}

TcpTransport::~TcpTransport() {
  try {
    settle_rails();
    stop();
  } catch (const std::bad_alloc&) {  // for the text of why it was stopped, which nobody will read
  }
  deliver_rest();
}

Status TcpTransport::listen(const TcpConfig& config) {
  if (config.tls) {
    CCOM_TRY_ASSIGN(tls_, TlsContext::create(tls_key_));
  }
  PeerAddress address{.endpoints = {}, .tls = config.tls};
  for (const std::string& each : config.bind_addresses) {
    CCOM_TRY_ASSIGN(Descriptor listener,
                    on_use_ ? keep_port(each, config.ports) : listen_at(each, config.ports, SOMAXCONN));
    address.endpoints.push_back(local_endpoint(listener.get()));
    listeners_.push_back(std::move(listener));
  }
  interfaces_ = listeners_.size();
  address_text_ = to_text(address);
  return Status::ok();
}

Status TcpTransport::check_peers(std::span<const Peer> peers) const {
  std::vector<Rank> seen = {self_.rank};
  for (const Peer& peer : peers) seen.push_back(peer.rank);
  std::ranges::sort(seen);
  const auto twice = std::ranges::adjacent_find(seen);
  if (twice != seen.end() || seen.front() < 0) {
    return error(Code::InvalidArgument, "connect rank %d: rank %d is not a valid peer, or is listed twice", self_.rank,
                 twice != seen.end() ? *twice : seen.front());
  }
  for (const Peer& peer : peers) {
    if (peer.channels < 1 || peer.channels > kMaxChannels) {
      return error(Code::InvalidArgument, "connect rank %d: %d channels with rank %d; expected 1 to %d", self_.rank,
                   peer.channels, peer.rank, kMaxChannels);
    }
    if (!on_use_) CCOM_TRY(check_peer(peer));
  }
  return Status::ok();
}

Status TcpTransport::check_peer(const Peer& peer) const {
  const auto address = parse_peer_address(peer.address);
  if (!address) return Status(address.error()).with_peers({peer.rank});
  CCOM_TRY(compare("TLS between ranks (CCOM_TLS)", tls_ != nullptr, address->tls, peer.rank));
  return compare("interfaces named in CCOM_TCP_RAILS or CCOM_SOCKET_IFNAME", interfaces_, address->endpoints.size(),
                 peer.rank);
}

// Its address has been validated.
void TcpTransport::make_channel(const Peer& peer, int index) {
  std::vector<std::unique_ptr<TcpChannel>>& channels = channels_[peer.rank];
  channels.resize(static_cast<size_t>(peer.channels));
  const std::string where = to_text(parse_peer_address(peer.address)->endpoints.front());
  Route route{.self = self_.rank, .peer = peer.rank, .channel = index, .address = where};
  const bool is_local = std::ranges::find(local_ranks_, peer.rank) != local_ranks_.end();
  const TcpChannel::Shape shape{static_cast<size_t>(self_.streams), self_.crc && !is_local, rail_limit()};
  channels[static_cast<size_t>(index)] = std::make_unique<TcpChannel>(std::move(route), shape, shared_);
}

std::unique_ptr<ConnectionSetup> TcpTransport::new_setup(asio::io_context& io) {
  const auto admit = [this](const LineId& id, std::unique_ptr<Line> line) {
    channels_.at(id.peer)[static_cast<size_t>(id.channel)]->set_line(static_cast<size_t>(id.stream), std::move(line));
  };
  return std::make_unique<ConnectionSetup>(
      ConnectionSetup::Context{io, listeners_, on_use_, self_, tls_.get(), options_, rail_limit()}, admit);
}

Status TcpTransport::connect(std::span<const Peer> peers, const WaitLimit& limit) {
  CCOM_TRY(Status(shared_.failure));
  if (std::exchange(was_connected_, true)) {
    return error(Code::InvalidUsage, "connect rank %d: called a second time", self_.rank);
  }
  Status status = check_peers(peers);
  if (status.is_ok() && on_use_) remember(peers);
  if (status.is_ok()) status = set_up_connections(peers, limit);
  if (!on_use_) listeners_.clear();
  if (!status.is_ok()) {
    channels_.clear();
    shared_.failure = status;
  }
  return status;
}

Status TcpTransport::set_up_connections(std::span<const Peer> peers, const WaitLimit& limit) {
  try {
    size_t lines = 0;
    for (const Peer& peer : peers) lines += static_cast<size_t>(peer.channels * self_.streams);
    CCOM_TRY(shared_.readiness.prepare(lines));
    if (on_use_) return Status::ok();
    asio::io_context io(1);
    const auto keep_running = asio::make_work_guard(io);
    const std::unique_ptr<ConnectionSetup> setup = new_setup(io);
    for (const Peer& peer : peers) {
      for (int index = 0; index < peer.channels; ++index) {
        make_channel(peer, index);
        CCOM_TRY(setup->add(peer, index));
      }
    }
    return setup->run(limit);
  } catch (const std::exception& thrown) {
    return library_error("connect", thrown);
  }
}

// Null: it is not there, or has not been asked for.
TcpChannel* TcpTransport::find(Rank peer, int index) {
  const auto found = channels_.find(peer);
  if (found == channels_.end() || index < 0 || static_cast<size_t>(index) >= found->second.size()) return nullptr;
  return found->second[static_cast<size_t>(index)].get();
}

Result<Channel*> TcpTransport::channel(Rank peer, int index) {
  const SharedLock lock(shared_);
  CCOM_TRY(Status(shared_.failure));
  if (TcpChannel* const found = find(peer, index)) return found;
  CCOM_TRY(begin_to_connect(peer, index));
  return find(peer, index);
}

Status TcpTransport::progress(Events& events) {
  const SharedLock lock(shared_);
  CCOM_TRY(Status(shared_.failure));
  shared_.may_progress = false;
  events.completed.insert(events.completed.end(), shared_.completed.begin(), shared_.completed.end());
  shared_.completed.clear();
  Status status = connecting_ == nullptr ? Status::ok() : go_on_connecting();
  if (status.is_ok()) status = pump_channels(events);
  if (status.is_ok() && events.mismatch) {
    shared_.failure = error(Code::Mismatch, "rank %d sent a different message than rank %d expects",
                            events.mismatch->peer, self_.rank)
                          .with_peers({events.mismatch->peer});
  }
  if (!status.is_ok()) shared_.failure = status;
  return status;
}

Status TcpTransport::pump_channels(Events& events) {
  std::vector<TcpChannel*>& active = shared_.active;
  const bool ask_first = active.size() * static_cast<size_t>(self_.streams) > kDirectLines;
  if (ask_first) shared_.readiness.look();
  for (size_t i = 0; i < active.size() && !events.mismatch;) {
    TcpChannel& channel = *active[i];
    CCOM_TRY(channel.pump(ask_first, events));
    if (channel.is_idle()) {
      channel.deactivate();
      active[i] = active.back();
      active.pop_back();
    } else {
      ++i;
    }
  }
  return Status::ok();
}

void TcpTransport::wait(std::chrono::nanoseconds at_most) {
  if (at_most.count() > 0) {
    try {
      std::chrono::nanoseconds longest = std::min<std::chrono::nanoseconds>(at_most, options_.silence / kSilenceChecks);
      if (connecting_ != nullptr) longest = std::min(longest, kConnectSlice);
      if (prepare_sleep(longest)) shared_.readiness.wait(longest);
    } catch (const std::exception& thrown) {
      const SharedLock lock(shared_);
      shared_.failure = library_error("wait for the network", thrown);
    }
  }
  shared_.readiness.forget_wake();
}

// Whether there is nothing to do before an event comes. Of acknowledgements none does.
bool TcpTransport::prepare_sleep(std::chrono::nanoseconds& longest) {
  const SharedLock lock(shared_);
  if (!shared_.failure.is_ok() || !shared_.completed.empty() || shared_.may_progress) return false;
  shared_.failure = check_silence();
  bool awaits_acknowledgements = false;
  for (TcpChannel* channel : shared_.active) {
    if (shared_.failure.is_ok()) shared_.failure = channel->arm_all();
    awaits_acknowledgements |= channel->awaits_acknowledgements();
  }
  pause_ = awaits_acknowledgements ? std::clamp<std::chrono::microseconds>(2 * pause_, kFirstSleep, kLongestSleep)
                                   : std::chrono::microseconds(0);
  if (awaits_acknowledgements) longest = std::min<std::chrono::nanoseconds>(longest, pause_);
  return shared_.failure.is_ok() && !shared_.may_progress;
}

Status TcpTransport::check_silence() {
  const auto now = Clock::now();
  if (now < next_check_) return Status::ok();
  next_check_ = now + (fails_over() ? rail_limit() : options_.silence) / kSilenceChecks;
  for (TcpChannel* channel : shared_.active) CCOM_TRY(channel->check_silence(options_.silence));
  return Status::ok();
}

void TcpTransport::care() {
  if (!shared_.mutex.try_lock()) return;  // its thread makes progress
  const Lock lock(shared_.mutex, std::adopt_lock);
  if (!shared_.failure.is_ok()) return;
  care_for_channels();
  if (!shared_.failure.is_ok() || !shared_.completed.empty()) shared_.readiness.wake();
}

void TcpTransport::care_for_channels() {
  shared_.failure = check_silence();
  for (TcpChannel* channel : shared_.active) {
    if (shared_.failure.is_ok()) shared_.failure = channel->care(shared_.completed);
  }
}

void TcpTransport::wake() { shared_.readiness.wake(); }

void TcpTransport::stop() {
  const SharedLock lock(shared_);
  if (shared_.failure.is_ok()) {
    shared_.failure = error(Code::InvalidUsage, "rank %d: the TCP transport was stopped", self_.rank);
  }
  connecting_.reset();
  for (auto& [peer, channels] : channels_) {
    for (const auto& channel : channels) {
      if (channel == nullptr) continue;
      channel->clear();
      for (size_t i = 0; i < channel->lines().size(); ++i) {
        if (channel->lines()[i] != nullptr) (void)channel->end_output(i);  // tells the peer
      }
    }
  }
  shared_.active.clear();
  shared_.completed.clear();
}

uint64_t TcpTransport::memory_bytes() const {
  const SharedLock lock(shared_);
  uint64_t bytes = shared_.pool.memory_bytes() + known_.capacity() * sizeof(Known) + known_addresses_.size();
  for (const auto& [peer, channels] : channels_) {
    for (const auto& channel : channels) bytes += channel == nullptr ? 0 : channel->memory_bytes();
  }
  return bytes;
}

Result<std::unique_ptr<Transport>> make_tcp_transport(const TcpConfig& config) {
  if (config.rank < 0) return error(Code::InvalidArgument, "tcp transport: invalid rank %d", config.rank);
  if (config.bind_addresses.empty() || config.bind_addresses.size() > kMaxStreams) {
    return error(Code::ConfigError, "tcp transport: %zu bind addresses; expected 1 to %d", config.bind_addresses.size(),
                 kMaxStreams)
        .with_cure("list fewer interfaces in CCOM_SOCKET_IFNAME");
  }
  if (config.streams < 1 || config.streams > kMaxStreams) {
    return error(Code::ConfigError, "CCOM_TCP_STREAMS=%d: expected 1 to %d", config.streams, kMaxStreams);
  }
  try {
    auto transport = std::make_unique<TcpTransport>(config);
    CCOM_TRY(transport->listen(config));
    return std::unique_ptr<Transport>(std::move(transport));
  } catch (const std::exception& thrown) {
    return library_error("create a TCP transport", thrown);
  }
}

}  // namespace ccom::tcp
