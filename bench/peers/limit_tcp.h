// SPDX-License-Identifier: Apache-2.0
//
// Allreduce of float32 over TCP on the loopback interface, with one connection between each two ranks. What a rank
// needs of the others has to cross the kernel, and every element to be added by somebody; that is all that these do:
//
//   inputs  each rank sends its input to all, and adds everything: one message, for those that are short
//   parts   chunk by chunk: each rank is sent a part of all inputs, and sends its sum to all: 2 (n-1)/n of the bytes,
//           which is the least for each rank; the next chunk's inputs are under way meanwhile
//
// No rank waits for anything but bytes: sends are never blocking, and whoever waits spins, or sleeps in poll().
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

#include "limit_collective.h"

namespace limit {

class TcpAllreduce final : public Collective {
 public:
  TcpAllreduce(int rank, int ranks, Rank* shared) : Collective(rank, ranks, shared), wires_(ranks_), polled_(ranks_) {
    connect_all();
  }
  ~TcpAllreduce() override {
    for (const Wire& wire : wires_) {
      if (wire.file >= 0) ::close(wire.file);
    }
  }

  std::vector<Setting> settings(size_t count) const override {
    const size_t bytes = count * sizeof(float);
    std::vector<Setting> all;
    for (const bool sleeps : {false, true}) {
      for (const size_t chunk : kChunks) {
        if (chunk > kChunks[0] && chunk / 2 >= bytes) continue;  // as the one before
        for (const Way way : {Way::Inputs, Way::Parts}) all.push_back({.way = way, .chunk = chunk, .sleeps = sleeps});
      }
    }
    return all;
  }

  void call(const Setting& setting, const float* send, float* recv, size_t count) override {
    sleeps_ = setting.sleeps;
    came_.resize(ranks_ * setting.chunk / sizeof(float));
    setting.way == Way::Inputs ? inputs(setting, send, recv, count) : parts(setting, send, recv, count);
    while (has_to_send()) progress();
  }

 private:
  struct Piece {
    const char* at;
    size_t bytes;
  };
  struct Wire {
    int file = -1;
    std::vector<Piece> out;  // from `first` on
    size_t first = 0;
    char* in = nullptr;
    size_t expected = 0;  // bytes
  };

  static void check(bool is_good, const char* what) {
    if (!is_good) sync_fail_with(what);
  }

  // To the ranks before this one; those behind it come, and say who they are.
  void connect_all() {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    auto* const named = reinterpret_cast<sockaddr*>(&address);
    const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    check(::bind(listener, named, length) == 0 && ::listen(listener, static_cast<int>(kMostRanks)) == 0 &&
              ::getsockname(listener, named, &length) == 0,
          "limit: no port");
    shared_[own_].port.store(address.sin_port, std::memory_order_release);
    for (size_t rank = 0; rank < own_; ++rank) {
      await(shared_[rank].port, 1);
      address.sin_port = static_cast<in_port_t>(shared_[rank].port.load(std::memory_order_acquire));
      const int file = wires_[rank].file = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
      check(::connect(file, named, sizeof address) == 0 && ::send(file, &own_, sizeof own_, 0) == sizeof own_,
            "limit: no connection");
    }
    for (size_t more = own_ + 1; more < ranks_; ++more) {
      const int file = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
      size_t rank = 0;
      check(::recv(file, &rank, sizeof rank, MSG_WAITALL) == sizeof rank, "limit: no connection");
      wires_[rank].file = file;
    }
    ::close(listener);
    const int on = 1;
    for (size_t distance = 1; distance < ranks_; ++distance) {
      ::setsockopt(wires_[other(distance)].file, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    }
  }

  void post(size_t rank, const float* from, size_t count) {
    if (count > 0) wires_[rank].out.push_back({reinterpret_cast<const char*>(from), count * sizeof(float)});
  }
  void expect(size_t rank, float* to, size_t count) {
    wires_[rank].in = reinterpret_cast<char*>(to);
    wires_[rank].expected = count * sizeof(float);
  }
  bool has_to_send() const {
    return std::any_of(wires_.begin(), wires_.end(), [](const Wire& wire) { return wire.first < wire.out.size(); });
  }
  // Until all that is expected has come.
  void receive() {
    while (std::any_of(wires_.begin(), wires_.end(), [](const Wire& wire) { return wire.expected > 0; })) progress();
  }

  // Bytes that moved; 0: it would have had to wait.
  static size_t moved(ssize_t result) {
    check(result > 0 || (result < 0 && (errno == EAGAIN || errno == EINTR)), "limit: a rank is gone");
    return result > 0 ? static_cast<size_t>(result) : 0;
  }

  // Sends and receives what can be without waiting; waits where that is nothing.
  void progress() {
    size_t all = 0;
    for (Wire& wire : wires_) {
      if (wire.first < wire.out.size()) {
        Piece& piece = wire.out[wire.first];
        const size_t sent = moved(::send(wire.file, piece.at, piece.bytes, MSG_DONTWAIT | MSG_NOSIGNAL));
        piece = {piece.at + sent, piece.bytes - sent};
        if (piece.bytes == 0 && ++wire.first == wire.out.size()) wire.out.clear(), wire.first = 0;
        all += sent;
      }
      if (wire.expected > 0) {
        const size_t came = moved(::recv(wire.file, wire.in, wire.expected, MSG_DONTWAIT));
        wire.in += came, wire.expected -= came;
        all += came;
      }
    }
    if (all > 0) return;
    if (!sleeps_) return relax();
    for (size_t rank = 0; rank < ranks_; ++rank) {
      const Wire& wire = wires_[rank];
      const int events = (wire.expected > 0 ? POLLIN : 0) | (wire.first < wire.out.size() ? POLLOUT : 0);
      polled_[rank] = {events == 0 ? -1 : wire.file, static_cast<short>(events), 0};
    }
    ::poll(polled_.data(), polled_.size(), -1);
  }

  // What came from a rank.
  float* came(size_t rank, const Setting& setting) { return came_.data() + rank * setting.chunk / sizeof(float); }

  // Adds what came and the own elements, in the same order on all ranks.
  void add(const Setting& setting, const float* own, float* to, size_t count) {
    sources_.clear();
    for (size_t rank = 0; rank < ranks_; ++rank) sources_.push_back(rank == own_ ? own : came(rank, setting));
    sum(sources_, {{to, false}}, count, false);
  }

  void inputs(const Setting& setting, const float* send, float* recv, size_t count) {
    const size_t chunk = setting.chunk / sizeof(float);
    for (size_t distance = 1; distance < ranks_; ++distance) post(other(distance), send, count);
    for (size_t begin = 0; begin < count; begin += chunk) {
      const size_t length = std::min(chunk, count - begin);
      for (size_t distance = 1; distance < ranks_; ++distance) {
        expect(other(distance), came(other(distance), setting), length);
      }
      receive();
      add(setting, send + begin, recv + begin, length);
    }
  }

  void parts(const Setting& setting, const float* send, float* recv, size_t count) {
    const size_t chunk = setting.chunk / sizeof(float), chunks = (count + chunk - 1) / chunk;
    const auto part = [&](size_t rank, size_t c) {
      const Part found = part_of(rank, std::min(chunk, count - c * chunk));
      return Part{c * chunk + found.begin, found.count};
    };
    const auto give = [&](size_t c) {
      for (size_t distance = 1; distance < ranks_ && c < chunks; ++distance) {
        const Part theirs = part(other(distance), c);
        post(other(distance), send + theirs.begin, theirs.count);
      }
    };
    const auto reduce = [&](size_t c) {
      const Part own = part(own_, c);
      for (size_t distance = 1; distance < ranks_; ++distance) {
        expect(other(distance), came(other(distance), setting), own.count);
      }
      receive();
      add(setting, send + own.begin, recv + own.begin, own.count);
      for (size_t distance = 1; distance < ranks_; ++distance) post(other(distance), recv + own.begin, own.count);
    };
    const auto take = [&](size_t c) {
      for (size_t distance = 1; distance < ranks_; ++distance) {
        const Part theirs = part(other(distance), c);
        expect(other(distance), recv + theirs.begin, theirs.count);
      }
      receive();
    };
    // On each connection: the inputs of chunks 0 and 1, the sums of 0, the inputs of 2, the sums of 1, and so on.
    give(0);
    give(1);
    for (size_t c = 0; c < chunks; ++c) {
      if (c >= 2) take(c - 2);
      reduce(c);
      give(c + 2);
    }
    for (size_t c = chunks < 2 ? 0 : chunks - 2; c < chunks; ++c) take(c);
  }

  std::vector<Wire> wires_;  // by rank; that of this one is not used
  std::vector<pollfd> polled_;
  std::vector<float> came_;
  bool sleeps_ = false;
};

}  // namespace limit
