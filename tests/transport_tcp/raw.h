// SPDX-License-Identifier: Apache-2.0
//
// What the TCP tests share: pairs of transports, plain sockets as strangers and as hostile peers, a proxy that damages
// data.
#pragma once

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "transports/tcp/factory.h"
#include "transports/tcp/line_terms.h"
#include "transports/tcp/wire.h"

namespace ccom::tcp {

inline constexpr auto kPatience = std::chrono::seconds(30);

// A blocking socket that gives up after kPatience.
class RawSocket {
 public:
  explicit RawSocket(int fd = -1) : fd_(fd) {}
  static RawSocket to(const std::string& address);  // a transport's; invalid if refused
  RawSocket(RawSocket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  RawSocket& operator=(RawSocket&& other) noexcept;
  ~RawSocket();
  bool is_open() const { return fd_ >= 0; }
  int fd() const { return fd_; }
  bool write(ConstBytes bytes) const;
  bool write(std::string_view text) const { return write(std::as_bytes(std::span(text))); }
  // Bytes read until `bytes` is full or the stream ended.
  size_t read(Bytes bytes) const;

 private:
  int fd_;
};

// Rank 1's side of a connection to rank 0, made by hand: channel 0, stream 0 of one stream and one channel.
class RawPeer {
 public:
  RawPeer(const std::string& address, const TcpConfig& like);
  // Whether rank 0 went along to the end.
  bool is_admitted();
  const RawSocket& socket() const { return socket_; }
  bool write(FragmentHeader header, ConstBytes payload);

 private:
  const Identity self_;
  RawSocket socket_;
  Handshake handshake_;
};

// Stands between a dialler and `target`; hands on everything but for what `tamper` changes on the dialler's way.
class Proxy {
 public:
  // Gets the position of the first byte in the stream; false cuts the connection.
  using Tamper = std::function<bool(uint64_t position, Bytes bytes)>;
  Proxy(std::string target, Tamper tamper);
  ~Proxy();
  const std::string& address() const { return address_; }

 private:
  void serve();
  const std::string target_;
  const Tamper tamper_;
  std::string address_;
  int listener_ = -1;
  std::atomic<bool> is_over_ = false;
  std::thread thread_;
};

TcpConfig config_of(Rank rank, const Secret& key, int streams = 1, bool crc = true);
std::unique_ptr<Transport> make(const TcpConfig& config);

// connect() of some transports at once, each in a thread.
struct Joining {
  Transport* transport;
  std::vector<Peer> peers;
  std::chrono::milliseconds patience = kPatience;
};
std::vector<Status> join_all(const std::vector<Joining>& all);
// Of rank 0 and rank 1, which is as patient as rank 0 unless it is told otherwise.
std::vector<Status> meet(Transport& rank0, Transport& rank1, std::chrono::milliseconds patience = kPatience,
                         std::chrono::milliseconds patience1 = {});

// Rank 0 and rank 1, connected.
struct Pair {
  std::unique_ptr<Transport> ranks[2];
  Channel& channel(Rank rank, int index = 0) { return **ranks[rank]->channel(1 - rank, index); }
};
struct PairShape {
  int streams = 1;
  bool crc = true;
  int channels = 1;
  std::string bind_address = "127.0.0.1";
  bool tls = false;
  std::chrono::milliseconds silence{6000};
};
Pair connected_pair(const PairShape& shape = {});

// Puts pieces where they belong, and counts them: one that came twice would make it too many.
class CopyingSink final : public Sink {
 public:
  explicit CopyingSink(size_t size_bytes) : bytes(size_bytes) {}
  void consume(size_t offset_bytes, ConstBytes piece) override {
    std::ranges::copy(piece, bytes.begin() + static_cast<ptrdiff_t>(offset_bytes));
    consumed_bytes += piece.size();
  }
  std::vector<std::byte> bytes;
  size_t consumed_bytes = 0;
};

// Calls progress() until that many completions, an error, a mismatch, or the end of patience.
struct Outcome {
  Status status;
  Events events;
};
Outcome drive(Transport& transport, size_t completions);

}  // namespace ccom::tcp
