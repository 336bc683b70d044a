// SPDX-License-Identifier: Apache-2.0
#include "transports/tcp/tcp_transport.h"

#include <algorithm>
#include <boost/asio/executor_work_guard.hpp>
#include <exception>
#include <thread>
#include <utility>

#include "base/log.h"
#include "transports/tcp/peer_address.h"

namespace ccom::tcp {
namespace {

// Up to this number every line with posted operations is polled by each progress(); above, only those reported by the
// reactor.
constexpr size_t kDirectLines = 16;
constexpr std::chrono::seconds kDeliveryTimeout{1};
constexpr int kMaxStreams = 16;
constexpr int kSilenceChecks = 16;  // silence checks per silence timeout

Status library_error(const char* action, const std::exception& thrown) {
  const bool lacks_memory = dynamic_cast<const std::bad_alloc*>(&thrown) != nullptr;
  if (lacks_memory) return error(Code::OutOfMemory, "%s: ran out of memory", action);
  return error(Code::SystemError, "%s: %s", action, thrown.what());
}

Status compare(const char* what, size_t mine, size_t theirs, Rank peer) {
  if (mine == theirs) return Status::ok();
  return error(Code::ConfigError, "%s: %zu on this rank, %zu on rank %d", what, mine, theirs, peer)
      .with_peers({peer})
      .with_cure("set the same CCOM_* variables and arguments on every rank");
}

// Every interface gets at least one connection.
int streams_of(const TcpConfig& config) {
  return std::max(config.streams, static_cast<int>(config.bind_addresses.size()));
}

}  // namespace

TcpTransport::TcpTransport(const TcpConfig& config)
    : self_{.rank = config.rank,
            .communicator = config.communicator,
            .key = config.key.derive("ccom tcp hello"),
            .streams = streams_of(config),
            .crc = config.crc && !config.tls},
      tls_key_(config.key.derive("ccom tcp tls")),
      options_{.silence = config.silence, .short_queue = config.bind_addresses.size() > 1},
      shared_(grid_bytes(streams_of(config))) {}

TcpTransport::~TcpTransport() {
  try {
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
    CCOM_TRY_ASSIGN(Descriptor listener, listen_at(each, config.ports, SOMAXCONN));
    address.endpoints.push_back(local_endpoint(listener.get()));
    listeners_.push_back(std::move(listener));
  }
  interfaces_ = listeners_.size();
  address_text_ = to_text(address);
  return Status::ok();
}

Status TcpTransport::check_peers(std::span<const Peer> peers) const {
  std::vector<Rank> seen = {self_.rank};
  for (const Peer& peer : peers) {
    if (std::ranges::find(seen, peer.rank) != seen.end() || peer.rank < 0) {
      return error(Code::InvalidArgument, "connect rank %d: rank %d is not a valid peer, or is listed twice",
                   self_.rank, peer.rank);
    }
    seen.push_back(peer.rank);
    if (peer.channels < 1 || peer.channels > kMaxChannels) {
      return error(Code::InvalidArgument, "connect rank %d: %d channels with rank %d; expected 1 to %d", self_.rank,
                   peer.channels, peer.rank, kMaxChannels);
    }
    const auto address = parse_peer_address(peer.address);
    if (!address) return Status(address.error()).with_peers({peer.rank});
    CCOM_TRY(compare("TLS between ranks (CCOM_TLS)", tls_ != nullptr, address->tls, peer.rank));
    CCOM_TRY(compare("interfaces named in CCOM_SOCKET_IFNAME", interfaces_, address->endpoints.size(), peer.rank));
  }
  return Status::ok();
}

void TcpTransport::make_channels(std::span<const Peer> peers) {
  for (const Peer& peer : peers) {
    const std::string where = to_text(parse_peer_address(peer.address)->endpoints.front());  // validated above
    for (int index = 0; index < peer.channels; ++index) {
      Route route{.self = self_.rank, .peer = peer.rank, .channel = index, .address = where};
      channels_[peer.rank].push_back(
          std::make_unique<TcpChannel>(std::move(route), static_cast<size_t>(self_.streams), self_.crc, shared_));
    }
  }
}

Status TcpTransport::connect(std::span<const Peer> peers, const WaitLimit& limit) {
  CCOM_TRY(Status(shared_.failure));
  if (std::exchange(was_connected_, true)) {
    return error(Code::InvalidUsage, "connect rank %d: called a second time", self_.rank);
  }
  Status status = check_peers(peers);
  if (status.is_ok()) status = set_up_connections(peers, limit);
  listeners_.clear();
  if (!status.is_ok()) {
    channels_.clear();
    shared_.failure = status;
  }
  return status;
}

Status TcpTransport::set_up_connections(std::span<const Peer> peers, const WaitLimit& limit) {
  try {
    make_channels(peers);
    size_t lines = 0;
    for (const Peer& peer : peers) lines += static_cast<size_t>(peer.channels * self_.streams);
    CCOM_TRY(shared_.readiness.prepare(lines));
    asio::io_context io(1);
    const auto keep_running = asio::make_work_guard(io);
    const auto admit = [this](const LineId& id, std::unique_ptr<Line> line) {
      channels_.at(id.peer)[static_cast<size_t>(id.channel)]->set_line(static_cast<size_t>(id.stream), std::move(line));
    };
    ConnectionSetup setup({io, listeners_, self_, tls_.get(), options_}, peers, admit);
    return setup.run(limit);
  } catch (const std::exception& thrown) {
    return library_error("connect", thrown);
  }
}

Result<Channel*> TcpTransport::channel(Rank peer, int index) {
  CCOM_TRY(Status(shared_.failure));
  const auto found = channels_.find(peer);
  if (found == channels_.end() || index < 0 || static_cast<size_t>(index) >= found->second.size()) {
    return error(Code::InvalidArgument, "rank %d has no tcp channel %d to rank %d", self_.rank, index, peer);
  }
  return found->second[static_cast<size_t>(index)].get();
}

Status TcpTransport::progress(Events& events) {
  CCOM_TRY(Status(shared_.failure));
  shared_.may_progress = false;
  events.completed.insert(events.completed.end(), shared_.completed.begin(), shared_.completed.end());
  shared_.completed.clear();
  Status status = pump_channels(events);
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
  const bool has_work = !shared_.failure.is_ok() || !shared_.completed.empty() || shared_.may_progress;
  if (!has_work && at_most.count() > 0) {
    try {
      shared_.failure = check_silence();
      if (shared_.failure.is_ok())
        sleep(std::min<std::chrono::nanoseconds>(at_most, options_.silence / kSilenceChecks));
    } catch (const std::exception& thrown) {
      shared_.failure = library_error("wait for the network", thrown);
    }
  }
  shared_.readiness.forget_wake();
}

Status TcpTransport::check_silence() {
  const auto now = Clock::now();
  if (now < next_check_) return Status::ok();
  next_check_ = now + options_.silence / kSilenceChecks;
  for (TcpChannel* channel : shared_.active) CCOM_TRY(channel->check_silence(options_.silence));
  return Status::ok();
}

void TcpTransport::sleep(std::chrono::nanoseconds at_most) {
  for (TcpChannel* channel : shared_.active) {
    shared_.failure = channel->arm_all();
    if (!shared_.failure.is_ok()) return;
  }
  if (!shared_.may_progress) shared_.readiness.wait(at_most);
}

void TcpTransport::wake() { shared_.readiness.wake(); }

void TcpTransport::stop() {
  if (shared_.failure.is_ok()) {
    shared_.failure = error(Code::InvalidUsage, "rank %d: the TCP transport was stopped", self_.rank);
  }
  for (auto& [peer, channels] : channels_) {
    for (const auto& channel : channels) {
      channel->clear();
      for (size_t i = 0; i < channel->lines().size(); ++i) (void)channel->end_output(i);  // tells the peer
    }
  }
  shared_.active.clear();
  shared_.completed.clear();
}

// Closing a socket with unread input makes the kernel discard pending output, as does input after the close. Therefore:
// send the end of stream, and wait until the peers' kernels have received everything.
// That takes a second at most. It needs no memory: there may be none.
void TcpTransport::deliver_rest() {
  const Deadline deadline = Deadline::after(kDeliveryTimeout);
  std::chrono::microseconds pause{20};
  while (!end_and_look()) {
    if (deadline.passed()) {
      log(LogLevel::Info, "rank %d: tcp connections were closed before all data was delivered", self_.rank);
      return;
    }
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, std::chrono::microseconds(1000));
  }
}

bool TcpTransport::end_and_look() {
  const Status& failure = shared_.failure;
  bool is_delivered = true;
  for (const auto& [peer, channels] : channels_) {
    const bool is_gone = failure.code() == Code::RemoteError && std::ranges::count(failure.peers(), peer) > 0;
    for (const auto& channel : channels) {
      for (size_t i = 0; i < channel->lines().size(); ++i) {
        const TcpChannel::Rest rest = channel->end_output(i);
        if (is_gone || unacknowledged_bytes(rest.fd) <= rest.unpromised_bytes) continue;
        discard_input(rest.fd);
        is_delivered = false;
      }
    }
  }
  return is_delivered;
}

uint64_t TcpTransport::memory_bytes() const {
  uint64_t bytes = shared_.pool.memory_bytes();
  for (const auto& [peer, channels] : channels_) {
    for (const auto& channel : channels) bytes += channel->memory_bytes();
  }
  return bytes;
}

Result<std::unique_ptr<Transport>> make_tcp_transport(TcpConfig config) {
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
