// SPDX-License-Identifier: Apache-2.0
//
// How much 10,240 ranks on 640 hosts say to one another when they start: docs/scale.md says what follows from it.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/text.h"
#include "bootstrap/relay_tree.h"
#include "setup/exchanges.pb.h"
#include "topology/topology.h"

namespace ccom {
namespace {

constexpr int kHosts = 640, kRanksPerHost = 16;

template <typename Message>
size_t part_bytes(const Message& message) {
  wire::Part part;
  part.set_message(message.SerializeAsString());
  return part.ByteSizeLong() + 4;  // the field around it in the answer
}

struct Said {
  size_t digests = 0, texts = 0, capabilities = 0, addresses = 0, connected = 0, ready = 0;
  size_t all() const { return digests + texts + capabilities + addresses + connected + ready; }
};

// As the ranks of trn2.48xlarge would, each bound to CPUs of its own; ranks of a host are neighbours in number.
void say(int host, int local, const Host& kind, Said& said) {
  const uint64_t number = 0x123456789abcdef0U + static_cast<uint64_t>(host * kRanksPerHost + local);
  wire::RankDigest digest;
  digest.set_terms(number);
  digest.set_host(number);
  digest.set_machine(number);
  digest.set_locality(number);
  digest.set_calibration(number);
  digest.set_ways(number);
  digest.set_nonce(number);
  said.digests += part_bytes(digest);

  wire::RankTexts texts;
  const bool is_first = host == 0 && local == 0;
  if (is_first) texts.set_terms(std::string(1000, 'x'));
  if (is_first) texts.set_calibration("");
  wire::Machine machine;
  machine.set_page_bytes(4096);
  machine.set_host(to_json(kind));
  if (is_first) texts.set_machine(machine.SerializeAsString());
  wire::HostNames names;
  names.set_id("0f8fad5b-d9cb-469f-a165-70867728950e ipc:[4026531839] mnt:[4026531841] net:[4026531840]");
  names.set_machine("0f8fad5b-d9cb-469f-a165-70867728950e");
  names.set_name("ip-10-123-210-100.us-west-2.compute.internal");
  if (local == 0) texts.set_host(names.SerializeAsString());
  if (host == 0) texts.set_locality(to_json(Locality{.cpus = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, .numa_node = 1}));
  said.texts += part_bytes(texts);

  wire::Capabilities capabilities;
  capabilities.set_process(number);
  capabilities.set_efa(true);
  capabilities.set_segment(local == 0 ? "/run/user/1000/ccom-segment-AbCdEf/s" : "");
  wire::ProcessMemory& memory = *capabilities.mutable_memory();
  memory.set_arena_bytes(uint64_t{64} << 30);
  memory.set_pid(123456);
  memory.set_probe(number);
  memory.set_descriptor(12);
  memory.set_inode(number);
  said.capabilities += part_bytes(capabilities);

  wire::Addresses addresses;
  addresses.set_control(local < 2 ? "10.123.210.100:41234" : "");
  addresses.set_agreement("10.123.210.100:41234");
  wire::TransportAddress& shm = *addresses.mutable_plans()->add_addresses();
  shm.set_transport("shm");
  shm.set_address("");
  wire::TransportAddress& tcp = *addresses.mutable_plans()->add_addresses();
  tcp.set_transport("tcp");
  tcp.set_address("10.123.210.100:41234");
  addresses.mutable_arena()->set_path("");
  said.addresses += part_bytes(addresses);

  wire::Connected connected;
  connected.set_topology(number);
  connected.set_arenas(true);
  connected.set_reads(true);
  connected.set_fences(true);
  said.connected += part_bytes(connected);
  said.ready += part_bytes(wire::Ready());
}

Said said_by_all() {
  const Topology instance = *make_topology("trn2.48xlarge");
  Said said;
  for (int host = 0; host < kHosts; ++host)
    for (int local = 0; local < kRanksPerHost; ++local) say(host, local, instance.hosts[0], said);
  return said;
}

TEST(ExchangedBytes, AreFewAtTenThousandRanks) {
  const Said said = said_by_all();
  std::printf("digests %zu, texts %zu, segments %zu, addresses %zu, connections %zu, node %zu: %zu bytes\n",
              said.digests, said.texts, said.capabilities, said.addresses, said.connected, said.ready, said.all());
  EXPECT_LT(said.all(), 3'000'000U);
  EXPECT_LT(said.texts, 400'000U) << "hosts of one kind are described once";
}

// The tree of relays: by relay, the one above (-1: the server), and how many are below.
struct Place {
  int above = -1, below = 0, depth = 1;
};

std::vector<Place> places_of(int relays, int degree) {
  RelayTree tree(degree);
  std::vector<Place> places;
  for (int relay = 0; relay < relays; ++relay) {
    Place place;
    const Caller caller{.rank = relay, .nranks = relays, .token = static_cast<uint64_t>(relay), .who = {}, .build = {}};
    if (const std::string way = tree.way_of(caller, std::to_string(relay)); !way.empty()) {
      place.above = std::stoi(way);
      place.depth = places[static_cast<size_t>(place.above)].depth + 1;
      ++places[static_cast<size_t>(place.above)].below;
    }
    places.push_back(place);
  }
  return places;
}

// A relay gets what all say once, hands it to those below and lays it down for its host once, and passes up what those
// below have said: at most all of it. An exchange takes a message up and one down each level, one after another, of
// 100 us there and back each, and the time of its bytes at 10 Gbit/s.
TEST(ExchangedBytes, PassThroughATreeOfRelaysInLessThanTwoSeconds) {
  constexpr int kDegree = 6, kExchanges = 7;  // with the joins
  constexpr double kRoundTripS = 100e-6, kBytesPerSecond = 1.25e9;
  const auto all = static_cast<double>(said_by_all().all());
  double most_bytes = (1 + kDegree + 1 + 2) * all;  // of rank 0's process: the server, and the relay of its host
  int depth = 0, at_server = 0;
  for (const Place& place : places_of(kHosts, kDegree)) {
    EXPECT_LE(place.below, kDegree);
    most_bytes = std::max(most_bytes, (3 + place.below) * all);
    depth = std::max(depth, place.depth);
    at_server += place.above < 0 ? 1 : 0;
  }
  const double seconds = kExchanges * 2 * depth * kRoundTripS + depth * (kDegree + 1) * all / kBytesPerSecond;
  std::printf("at most %.1f MB through a process, %d levels, %.3f s\n", most_bytes / 1e6, depth, seconds);
  EXPECT_EQ(at_server, kDegree + 1);
  EXPECT_LT(most_bytes, 30e6);
  EXPECT_LT(seconds, 2);
}

}  // namespace
}  // namespace ccom
