// SPDX-License-Identifier: Apache-2.0
//
// The tcp transport: its channels, their reactor, and shutdown.
#pragma once

#include <boost/asio/executor_work_guard.hpp>
#include <exception>
#include <map>
#include <memory>
#include <vector>

#include "transports/tcp/channel.h"
#include "transports/tcp/connection_setup.h"
#include "transports/tcp/factory.h"
#include "transports/tcp/line_terms.h"

namespace ccom::tcp {

// Of an exception that a library has thrown.
Status library_error(const char* action, const std::exception& thrown);

class TcpTransport final : public Transport {
 public:
  explicit TcpTransport(const TcpConfig& config);
  TcpTransport(const TcpTransport&) = delete;
  TcpTransport& operator=(const TcpTransport&) = delete;
  ~TcpTransport() override;

  // Called once, before anything else.
  Status listen(const TcpConfig& config);

  std::string_view name() const override { return "tcp"; }
  std::string address() const override { return address_text_; }
  Status connect(std::span<const Peer> peers, const WaitLimit& limit) override;
  Result<Channel*> channel(Rank peer, int index) override;
  Status progress(Events& events) override;
  void wait(std::chrono::nanoseconds at_most) override;
  void wake() override;
  void stop() override;
  bool needs_care() const override { return fails_over(); }
  void care() override;
  uint64_t memory_bytes() const override;

 private:
  Status check_peers(std::span<const Peer> peers) const;
  Status check_peer(const Peer& peer) const;
  void remember(std::span<const Peer> peers);
  std::unique_ptr<ConnectionSetup> new_setup(asio::io_context& io);
  void make_channel(const Peer& peer, int index);
  Status set_up_connections(std::span<const Peer> peers, const WaitLimit& limit);
  TcpChannel* find(Rank peer, int index);
  Status begin_to_connect(Rank peer, int index);
  Status go_on_connecting();
  Status pump_channels(Events& events);
  // Over several interfaces.
  bool fails_over() const { return options_.short_queue; }
  // See Rails. A line is given up for others, which costs no more than its share, after a part of the time for the last
  // one.
  std::chrono::milliseconds rail_limit() const {
    return fails_over() ? options_.silence / 4 : std::chrono::milliseconds(0);
  }
  void care_for_channels();
  bool prepare_sleep(std::chrono::nanoseconds& longest);
  Status check_silence();
  void settle_rails();
  void deliver_rest();
  bool end_and_look();  // whether everything promised has reached the peers' kernels

  std::vector<Descriptor> listeners_;  // per interface, until connect(); where channels are connected on use, ports
  const Identity self_;
  const Secret tls_key_;
  const SocketOptions options_;
  size_t interfaces_ = 0;
  Clock::time_point next_check_{};     // for silence
  std::chrono::microseconds pause_{};  // for acknowledgements
  std::unique_ptr<TlsContext> tls_;    // null without TLS; declared before the channels, whose lines refer to it
  std::string address_text_;
  const bool on_use_;
  const std::vector<Rank> local_ranks_;
  bool was_connected_ = false;
  mutable Shared shared_;
  std::map<Rank, std::vector<std::unique_ptr<TcpChannel>>> channels_;  // null: has not been asked for
  // On use: all peers, ascending; their addresses lie in a row. Ten thousand of them are remembered here.
  struct Known {
    Rank rank = -1;
    int channels = 0;
    size_t address_end = 0;
  };
  std::vector<Known> known_;
  std::string known_addresses_;
  // While channels are being connected on use.
  struct Connecting {
    asio::io_context io{1};
    asio::executor_work_guard<asio::io_context::executor_type> keep_running = asio::make_work_guard(io);
    std::unique_ptr<ConnectionSetup> setup;
  };
  std::unique_ptr<Connecting> connecting_;
};

}  // namespace ccom::tcp
