// SPDX-License-Identifier: Apache-2.0
//
// What ranks tell one another at the start (setup/exchanges.proto): parts of an all-gather that other ranks have sent.
#include <functional>

#include "memory/process_memory.h"
#include "setup/agreement.h"
#include "setup/arena_exchange.h"
#include "setup/exchange.h"
#include "setup/exchanges.pb.h"
#include "tests/fuzz/target.h"
#include "tests/harness/folder.h"
#include "tests/setup/made_rendezvous.h"

namespace ccom {
namespace {

using fuzz::Reader;
using fuzz::require;
using fuzz::text_of;

std::string part_with(const google::protobuf::MessageLite& message) {
  wire::Part part;
  part.set_message(message.SerializePartialAsString());
  return part.SerializeAsString();
}

// We are rank 0; the parts of the others are made from ours.
MadeRendezvous made_others(int count, std::function<std::string(const std::string& ours)> make) {
  return MadeRendezvous([count, make = std::move(make)](std::string_view, std::string ours, Deadline) {
    std::vector<std::string> all{ours};
    for (int i = 0; i < count; ++i) all.push_back(make(ours));
    return all;
  });
}

void require_blames_another(const Status& status) {
  require(!status.message().empty() && status.peers().size() == 1 && status.peers()[0] == 1);
}

// What was accepted is the same after another journey.
template <typename Message>
void exchange_as(ConstBytes part) {
  MadeRendezvous others = made_others(1, [part](const std::string&) { return std::string(text_of(part)); });
  Message ours;
  Result<std::string> mine = ours.SerializePartialAsString();
  const auto texts = exchange_serialized(others, "phase", std::move(mine), Deadline::after_ms(1000));
  if (!texts) return require_blames_another(texts.error());
  require(texts->size() == 2);
  Message theirs, again;
  if (const Status read = parse_part((*texts)[1], "phase", 1, theirs); !read.is_ok())
    return require_blames_another(read);
  require(theirs.IsInitialized());
  require(parse_part(theirs.SerializeAsString(), "phase", 1, again).is_ok());
}

CCOM_FUZZ_TARGET(exchange_parts) {
  if (input.empty()) return;
  const ConstBytes part = input.subspan(1);
  switch (std::to_integer<int>(input[0]) % 6) {
    case 0: return exchange_as<wire::RankTexts>(part);
    case 1: return exchange_as<wire::Capabilities>(part);
    case 2: return exchange_as<wire::Addresses>(part);
    case 3: return exchange_as<wire::Connected>(part);
    case 4: return exchange_as<wire::RankDigest>(part);
    default: return exchange_as<wire::Ready>(part);
  }
}

// A text with pieces of others in it, or without some of its own.
void edit(Reader& reader, std::string& text) {
  for (size_t edits = reader.below(4); edits > 0; --edits) {
    const size_t at = reader.below(text.size() + 1), length = reader.below(12);
    text.replace(at, length, text_of(reader.take(reader.below(24))));
  }
}

// Descriptions of this machine by up to three other ranks, in which anything may differ: one topology of them all, or
// an error.
CCOM_FUZZ_TARGET(rank_descriptions) {
  static const TemporaryFolder nowhere;
  Reader reader(input);
  const int others = 1 + static_cast<int>(reader.below(3));
  int said = 0;
  MadeRendezvous rendezvous = made_others(others, [&](const std::string& ours) {
    wire::Part part;
    require(part.ParseFromString(ours));
    if (said++ < others) {  // hashes first
      wire::RankDigest theirs;
      require(theirs.ParseFromString(part.message()));
      const auto own = reader.number<uint8_t>();
      if ((own & 1) != 0) theirs.set_terms(reader.below(2));
      if ((own & 2) != 0) theirs.set_host(reader.below(2));
      if ((own & 4) != 0) theirs.set_machine(reader.below(2));
      if ((own & 8) != 0) theirs.set_locality(reader.below(2));
      if ((own & 16) != 0) theirs.set_calibration(reader.below(2));
      return part_with(theirs);
    }
    wire::RankTexts theirs;
    require(theirs.ParseFromString(part.message()));
    const auto changes = reader.number<uint8_t>();
    wire::Machine machine;
    wire::Terms terms;
    require(machine.ParseFromString(theirs.machine()) && terms.ParseFromString(theirs.terms()));
    if ((changes & 1) != 0) edit(reader, *machine.mutable_host());
    if ((changes & 2) != 0) edit(reader, *theirs.mutable_locality());
    if ((changes & 4) != 0) *theirs.mutable_calibration() = text_of(reader.take(reader.below(400)));
    if ((changes & 8) != 0) edit(reader, *theirs.mutable_host());
    if ((changes & 16) != 0) edit(reader, *terms.mutable_settings());
    if ((changes & 32) != 0) machine.set_page_bytes(reader.number<uint64_t>());
    if ((changes & 64) != 0) edit(reader, *terms.mutable_plans());
    if ((changes & 128) != 0) theirs.clear_machine();
    if (theirs.has_machine()) theirs.set_machine(machine.SerializeAsString());
    theirs.set_terms(terms.SerializeAsString());
    return part_with(theirs);
  });
  CommConfig config;
  config.sysfs_root = nowhere.path();
  config.host_id = "host";
  const uint8_t secret[Secret::kBytes] = {1};
  const Membership membership{.rank = 0, .nranks = 1 + others, .communicator = 7, .secret = Secret(secret)};
  const Result<Agreement> agreement = agree(membership, config, rendezvous, Deadline::after_ms(20'000));
  if (!agreement) return require(!agreement.error().message().empty());
  const Topology& topology = agreement->topology;
  require(topology.nranks() == membership.nranks);
  for (const Place& place : topology.ranks)
    require(place.host >= 0 && static_cast<size_t>(place.host) < topology.hosts.size());
}

// What other processes of the host say of their memory, and where they offer it.
CCOM_FUZZ_TARGET(arena_offers) {
  Reader reader(input);
  const uint8_t bytes[Secret::kBytes] = {1};
  ArenaExchange exchange(0, Secret(bytes));
  std::vector<wire::ProcessMemory> memory{ArenaExchange::describe()};
  std::vector<uint64_t> processes{process_number()};
  for (size_t count = 1 + reader.below(3); count > 0; --count) {
    const auto kind = reader.number<uint8_t>();
    processes.push_back((kind & 1) != 0 ? process_number() : reader.below(4));
    memory.push_back(memory.front());
    if ((kind & 2) != 0) memory.back().set_arena_bytes(reader.number<uint64_t>());
    if ((kind & 4) != 0) memory.back().set_pid(reader.number<int32_t>());
    if ((kind & 8) != 0) memory.back().set_probe(reader.number<uint64_t>());
  }
  std::vector<ArenaExchange::Said> said;
  for (size_t i = 0; i < memory.size(); ++i) said.push_back({processes[i], &memory[i]});
  std::vector<wire::ArenaOffer> offers{exchange.prepare(said)};
  for (size_t i = 1; i < memory.size(); ++i) {
    wire::ArenaOffer& theirs = offers.emplace_back();
    for (size_t wanted = reader.below(3); wanted > 0; --wanted)
      theirs.add_wanted(reader.below(2) == 0 ? process_number() : reader.number<uint64_t>());
    theirs.set_path(std::string(text_of(reader.take(reader.below(120)))));
  }
  std::vector<const wire::ArenaOffer*> all;
  for (const wire::ArenaOffer& offer : offers) all.push_back(&offer);
  exchange.trade(all, Deadline::after_ms(0));
  require(exchange.peers().size() == memory.size());
}

}  // namespace
}  // namespace ccom
