// SPDX-License-Identifier: Apache-2.0
//
// One bit, or a burst of up to 32, is flipped in a message or a written payload on its way to rank 0: rank 0 has an
// error that names both ranks, or, where the bits were those of an immediate, which no checksum covers, an unfinished
// receive; never a wrong result. 500 flips; CCOM_TEST_LONG=1: a million; CCOM_TEST_POINTS: that many.
#include <gtest/gtest.h>

#include <cstdio>
#include <random>
#include <thread>

#include "base/secret.h"
#include "tests/harness/effort.h"
#include "tests/transport_ofi/memory_endpoint.h"
#include "transports/ofi/ofi_transport.h"

namespace ccom::ofi {
namespace {

using Arrival = MemoryFabric::Arrival;

constexpr size_t kMessageBytes = 2048;
constexpr int kIdleRounds = 300;  // in memory nothing is late

void flip(Bytes bytes, size_t first_bit, uint32_t pattern) {
  for (size_t i = 0; i < 32 && first_bit + i < bytes.size() * 8; ++i) {
    if ((pattern >> i & 1) != 0) bytes[(first_bit + i) / 8] ^= std::byte{1} << (first_bit + i) % 8;
  }
}

struct Parcel {
  std::vector<std::byte> sent, received;
};

// Two ranks; rank 0's transport is made first, so endpoint 0 has its messages and endpoint 1 the writes to it.
struct DamagedPair {
  DamagedPair() : fabric(kMessageBytes) {
    for (Rank rank : {0, 1}) {
      auto endpoint = fabric.open();
      std::vector<std::unique_ptr<Endpoint>> rails;
      rails.push_back(fabric.open());
      const OfiConfig config{.rank = rank, .communicator = 5, .key = key, .provider = "memory", .bind_address = ""};
      ranks[rank] = *OfiTransport::create(config, std::move(endpoint), std::move(rails));
    }
    std::thread other([this] { connect(1); });
    connect(0);
    other.join();
  }
  ~DamagedPair() { fabric.cut(); }
  void connect(Rank rank) {
    const Peer peer{1 - rank, ranks[1 - rank]->address(), 1};
    EXPECT_EQ(ranks[rank]->connect({&peer, 1}, Deadline::after(std::chrono::seconds(60))).message(), "");
  }
  Channel& channel(Rank rank) { return **ranks[rank]->channel(1 - rank, 0); }

  const Secret key = Secret::random();
  MemoryFabric fabric;
  std::unique_ptr<OfiTransport> ranks[2];
};

struct Found {
  bool was_damaged = false;
  bool was_immediate = false;
  std::string fault;  // "" if all is as it must be
};

Found try_one(std::mt19937_64& random) {
  DamagedPair pair;
  Found found;
  const size_t due = random() % 6;  // this arrival is damaged
  const uint64_t where = random();
  const uint32_t pattern = random() % 2 == 0 ? 1 : static_cast<uint32_t>(random()) | 1;
  size_t arrivals = 0;
  pair.fabric.set_hook([&](size_t endpoint, Arrival kind, Bytes bytes) {
    if (endpoint > 1 || bytes.empty() || arrivals++ != due) return;
    found.was_damaged = true;
    found.was_immediate = kind == Arrival::Immediate;
    flip(bytes, where % (bytes.size() * 8), pattern);
  });
  std::vector<Parcel> messages(1 + random() % 3);
  for (size_t i = 0; i < messages.size(); ++i) {
    Parcel& message = messages[i];
    const size_t size = random() % 3 == 0 ? random() % (random() % 4 == 0 ? 200'000 : 20'000) : random() % 3000;
    message.sent.resize(size);
    for (size_t at = 0; at < size; ++at) message.sent[at] = static_cast<std::byte>(at * 7 + i);
    message.received.resize(size);
    EXPECT_TRUE(pair.channel(0).post_receive({{}, size, message.received.data(), nullptr, i}).is_ok());
    EXPECT_TRUE(pair.channel(1).post_send({{}, message.sent, i}).is_ok());
  }
  Events events, unused;
  Status status;
  for (int idle = 0; idle < kIdleRounds && status.is_ok() && !events.mismatch; ++idle) {
    const size_t before = events.completed.size() + arrivals;
    (void)pair.ranks[1]->progress(unused);
    status = pair.ranks[0]->progress(events);
    if (events.completed.size() == messages.size()) break;
    if (before != events.completed.size() + arrivals) idle = 0;
  }
  for (const Token token : events.completed) {
    if (messages[token].received != messages[token].sent) found.fault = "a wrong result";
  }
  if (!found.was_damaged || found.was_immediate) return found;
  if (events.mismatch) found.fault = "taken for another call";
  if (found.fault.empty() && status.is_ok()) {
    found.fault = events.completed.size() == messages.size() ? "not found" : "not found; the receive waits for ever";
  }
  const bool is_named = status.code() == Code::TransportError && status.peers() == std::vector<int>{1} &&
                        status.message().find("rank 0") != std::string::npos &&
                        status.message().find("rank 1") != std::string::npos;
  if (found.fault.empty() && !is_named) found.fault = "another error: " + status.message();
  return found;
}

TEST(OfiChecksum, FindsEveryFlippedBitAndBurst) {
  const size_t wanted = count_from("CCOM_TEST_POINTS", 500, 1'000'000);
  const uint64_t first = test_seed();
  SCOPED_TRACE("CCOM_TEST_SEED=" + std::to_string(first));
  std::mt19937_64 seeds(first);
  size_t flips = 0, immediates = 0, wrong = 0;
  while (flips < wanted && wrong < 20) {
    const uint64_t seed = seeds();
    std::mt19937_64 random(seed);
    const Found found = try_one(random);
    flips += found.was_damaged && !found.was_immediate ? 1 : 0;
    immediates += found.was_immediate ? 1 : 0;
    wrong += found.fault.empty() ? 0 : 1;
    EXPECT_EQ(found.fault, "") << "seed " << seed;
  }
  std::printf("%zu flips in messages and payloads, %zu in immediates, %zu wrong\n", flips, immediates, wrong);
}

// A flipped bit in the flag that said whether there was a checksum turned the check off; it is agreed on now.
TEST(OfiChecksum, IsAgreedOnByBothRanks) {
  MemoryFabric fabric(kMessageBytes);
  const Secret key = Secret::random();
  std::unique_ptr<OfiTransport> ranks[2];
  for (Rank rank : {0, 1}) {
    const OfiConfig config{
        .rank = rank, .communicator = 5, .key = key, .provider = "memory", .bind_address = "", .checksum = rank == 0};
    ranks[rank] = *OfiTransport::create(config, fabric.open());
  }
  Status statuses[2];
  const auto connect = [&](Rank rank) {
    const Peer peer{1 - rank, ranks[1 - rank]->address(), 1};
    statuses[rank] = ranks[rank]->connect({&peer, 1}, Deadline::after(std::chrono::seconds(30)));
  };
  std::thread other([&] { connect(1); });
  connect(0);
  other.join();
  fabric.cut();
  for (const Status& status : statuses) {
    EXPECT_EQ(status.code(), Code::ConfigError) << status.message();
    EXPECT_NE(status.message().find("CCOM_CRC"), std::string::npos) << status.message();
  }
}

}  // namespace
}  // namespace ccom::ofi
