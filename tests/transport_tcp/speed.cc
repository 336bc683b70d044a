// SPDX-License-Identifier: Apache-2.0
//
// Not a test: what the transport costs over a bare socket, on loopback, in one interleaved run; everybody polls.
//
// Columns: half round trip of a bare socket, of the transport with a target, with a Sink, and with a target inside TLS;
// and the ratios. Each is
// the fastest tenth of all round trips, the median of several rounds: so a busy machine disturbs little as long as both
// threads run at the same time now and then. With one thread that drives both ends it shows the work alone, without
// hand-overs. Usage: tcp_speed [streams] [crc 0|1] [threads 1|2] [bytes; 0: several]
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <thread>

#include "transports/tcp/factory.h"

namespace ccom {
namespace {

constexpr int kRounds = 5;
constexpr size_t kPiece = size_t{256} << 10;

void pin(int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  (void)::pthread_setaffinity_np(::pthread_self(), sizeof(set), &set);
}

void require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "tcp_speed: %s\n", what);
  std::exit(1);
}

// Polls, and now and then lets others run: on a busy machine a mere spin measures the scheduler's time slices.
class Patience {
 public:
  void spend() {
    if (++polls_ % 500 == 0) ::sched_yield();
  }

 private:
  unsigned polls_ = 0;
};

// How long each round trip took, in microseconds.
class Laps {
 public:
  void lap() {
    const auto now = Clock::now();
    times_.push_back(std::chrono::duration<double, std::micro>(now - last_).count());
    last_ = now;
  }
  double fastest_tenth() {
    std::ranges::sort(times_);
    return times_[times_.size() / 10];
  }

 private:
  Clock::time_point last_ = Clock::now();
  std::vector<double> times_;
};

void run_both(const std::function<void(int side)>& run_side) {
  std::thread other([&run_side] {
    pin(1);
    run_side(1);
  });
  pin(0);
  run_side(0);
  other.join();
}

class BarePair {
 public:
  BarePair() {
    const int listener = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof(address);
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    require(::bind(listener, generic, length) == 0 && ::listen(listener, 1) == 0, "listen");
    require(::getsockname(listener, generic, &length) == 0, "getsockname");
    fds_[0] = ::socket(AF_INET, SOCK_STREAM, 0);
    require(::connect(fds_[0], generic, length) == 0, "connect");
    fds_[1] = ::accept(listener, nullptr, nullptr);
    ::close(listener);
    const int one = 1;
    for (const int fd : fds_) (void)::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
  }
  ~BarePair() {
    ::close(fds_[0]);
    ::close(fds_[1]);
  }
  // One way, by one thread.
  void carry(int from, Bytes sent, Bytes received) {
    size_t out = 0, in = 0;
    while (in < received.size()) {
      if (out < sent.size()) {
        const ssize_t done = ::send(fds_[from], sent.data() + out, std::min(sent.size() - out, kPiece), MSG_DONTWAIT);
        if (done > 0) out += static_cast<size_t>(done);
      }
      const ssize_t got =
          ::recv(fds_[1 - from], received.data() + in, std::min(received.size() - in, kPiece), MSG_DONTWAIT);
      if (got > 0) in += static_cast<size_t>(got);
    }
  }
  // Every byte that goes out comes back; both directions never at once.
  void ping_pong(int side, Bytes buffer, int repetitions, Laps& laps) {
    for (int i = 0; i < repetitions; ++i) {
      if (side == 0) send(side, buffer);
      receive(side, buffer);
      if (side == 1) send(side, buffer);
      if (side == 0) laps.lap();
    }
  }

 private:
  void send(int side, ConstBytes bytes) {
    for (Patience patience; !bytes.empty(); patience.spend()) {
      const ssize_t sent = ::send(fds_[side], bytes.data(), bytes.size(), MSG_DONTWAIT);
      if (sent > 0) bytes = bytes.subspan(static_cast<size_t>(sent));
    }
  }
  void receive(int side, Bytes bytes) {
    for (Patience patience; !bytes.empty(); patience.spend()) {
      const ssize_t got = ::recv(fds_[side], bytes.data(), bytes.size(), MSG_DONTWAIT);
      if (got > 0) bytes = bytes.subspan(static_cast<size_t>(got));
    }
  }
  int fds_[2];
};

class NullSink final : public Sink {
 public:
  void consume(size_t, ConstBytes) override {}
};

class TransportPair {
 public:
  TransportPair(int streams, bool crc, bool tls) {
    const Secret key = Secret::random();
    for (Rank rank : {0, 1}) {
      auto made = tcp::make_tcp_transport({.rank = rank,
                                           .communicator = 1,
                                           .key = key,
                                           .bind_addresses = {"127.0.0.1"},
                                           .streams = streams,
                                           .crc = crc,
                                           .tls = tls});
      require(made.has_value(), "make_tcp_transport");
      transports_[rank] = *std::move(made);
    }
    run_both([this](int side) {
      const std::vector<Peer> peers = {{1 - side, transports_[1 - side]->address(), 1}};
      require(transports_[side]->connect(peers, Deadline::after_ms(5000)).is_ok(), "connect");
    });
  }
  void carry(int from, Bytes sent, Bytes received, Sink* sink) {
    Channel& source = **transports_[from]->channel(1 - from, 0);
    Channel& destination = **transports_[1 - from]->channel(from, 0);
    const std::byte* const target = sink ? nullptr : received.data();
    const Receive receive{{}, received.size(), const_cast<std::byte*>(target), sink, 0};
    require(destination.post_receive(receive).is_ok() && source.post_send({{}, sent, 0}).is_ok(), "post");
    Events events;
    while (events.completed.size() < 2) {
      require(transports_[from]->progress(events).is_ok() && transports_[1 - from]->progress(events).is_ok(),
              "progress");
    }
  }
  void ping_pong(int side, Bytes buffer, int repetitions, Sink* sink, Laps& laps) {
    Transport& transport = *transports_[side];
    Channel& channel = **transport.channel(1 - side, 0);
    const Receive receive{
        .expected = {}, .size_bytes = buffer.size(), .target = sink ? nullptr : buffer.data(), .sink = sink};
    for (int i = 0; i < repetitions; ++i) {
      require(channel.post_receive(receive).is_ok(), "post_receive");
      size_t wanted = 2;
      if (side == 1) wanted -= await(transport, 1);
      require(channel.post_send({.envelope = {}, .payload = buffer}).is_ok(), "post_send");
      await(transport, wanted);
      if (side == 0) laps.lap();
    }
  }

 private:
  static size_t await(Transport& transport, size_t completions) {
    Events events;
    for (Patience patience; events.completed.size() < completions; patience.spend()) {
      require(transport.progress(events).is_ok(), "progress");
    }
    return events.completed.size();
  }
  std::unique_ptr<Transport> transports_[2];
};

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

enum Way { kBare, kTarget, kSink, kTls, kWays };

// Round trips in microseconds.
void print(size_t size_bytes, const std::array<double, kWays>& times) {
  std::printf("%10zu B  bare %9.2f us %6.2f GB/s", size_bytes, times[kBare] / 2,
              static_cast<double>(size_bytes) / times[kBare] * 2e-3);
  for (const auto& [name, way] : {std::pair("target", kTarget), std::pair("sink", kSink), std::pair("TLS", kTls)}) {
    std::printf("   %s %9.2f us (x %.2f)", name, times[way] / 2, times[way] / times[kBare]);
  }
  std::printf("   TLS / target %.2f\n", times[kTls] / times[kTarget]);
}

struct Contest {
  Contest(int streams, bool crc) : plain(streams, crc, false), tls(streams, crc, true) {}
  BarePair bare;
  TransportPair plain;
  TransportPair tls;
};

// Two threads, each with an end.
double measure(Way way, size_t size_bytes, int repetitions, Contest& contest) {
  std::vector<std::byte> buffers[2] = {std::vector<std::byte>(size_bytes), std::vector<std::byte>(size_bytes)};
  NullSink sink;
  Laps laps;
  run_both([&](int side) {
    if (way == kBare) return contest.bare.ping_pong(side, buffers[side], repetitions, laps);
    TransportPair& pair = way == kTls ? contest.tls : contest.plain;
    pair.ping_pong(side, buffers[side], repetitions, way == kSink ? &sink : nullptr, laps);
  });
  return laps.fastest_tenth();
}

// One thread with both.
double measure_work(Way way, size_t size_bytes, int repetitions, Contest& contest) {
  std::vector<std::byte> sent(size_bytes), received(size_bytes);
  NullSink sink;
  Laps laps;
  for (int i = 0; i < repetitions; ++i) {
    for (const int from : {0, 1}) {
      if (way == kBare) {
        contest.bare.carry(from, sent, received);
      } else {
        TransportPair& pair = way == kTls ? contest.tls : contest.plain;
        pair.carry(from, sent, received, way == kSink ? &sink : nullptr);
      }
    }
    laps.lap();
  }
  return laps.fastest_tenth();
}

void compare(size_t size_bytes, int threads, Contest& contest) {
  const int repetitions = static_cast<int>(std::clamp<size_t>((size_t{128} << 20) / (size_bytes + 20000), 15, 5000));
  std::array<std::vector<double>, kWays> times;
  for (int round = 0; round < kRounds; ++round) {
    for (const Way way : {kBare, kTarget, kSink, kTls}) {
      times[way].push_back((threads == 1 ? measure_work : measure)(way, size_bytes, repetitions, contest));
    }
  }
  print(size_bytes, {median(times[kBare]), median(times[kTarget]), median(times[kSink]), median(times[kTls])});
}

int run(int streams, bool crc, int threads, int only_bytes) {
  Contest contest(streams, crc);
  std::printf("streams %d, checksums %s, threads %d\n", streams, crc ? "on" : "off", threads);
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  for (const size_t size_bytes : {8, 1024, 8192, 65536, 1 << 20, 4 << 20, 32 << 20}) {
    if (only_bytes == 0) compare(size_bytes, threads, contest);
  }
  if (only_bytes > 0) compare(static_cast<size_t>(only_bytes), threads, contest);
  return 0;
}

}  // namespace
}  // namespace ccom

int main(int argc, char** argv) {
  const auto argument = [argc, argv](int index, int otherwise) {
    return argc > index ? std::atoi(argv[index]) : otherwise;
  };
  return ccom::run(argument(1, 1), argument(2, 1) != 0, argument(3, 2), argument(4, 0));
}
