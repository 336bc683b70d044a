// SPDX-License-Identifier: Apache-2.0
#include "setup/agreement.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <unordered_map>
#include <utility>

#include "base/assert.h"
#include "base/files.h"
#include "base/log.h"
#include "base/text.h"
#include "base/version.h"
#include "setup/exchange.h"
#include "setup/exchanges.pb.h"

namespace ccom {
namespace {

constexpr const char* kTextsPhase = "descriptions";

// What they mean is the planner's affair.
Result<std::string> read_plans(const std::string& path) {
  if (path.empty()) return std::string();
  Result<std::string> text = read_file(path);
  if (text && !text->empty()) return text;
  return error(ErrorKey::PlanFile, "CCOM_PLAN=%s: %s", path.c_str(),
               text ? "the file is empty" : text.error().message().c_str())
      .with_cure("name a file that every rank can read, or unset CCOM_PLAN");
}

// What a rank says, as texts; what may be long is compared by its hash alone, the file being there for each rank.
struct Description {
  std::string terms, host, machine, locality, calibration;
  LearnedWays ways;  // of the tuning file
};

// The texts in which ranks may differ, their hashes, and what they are called.
struct Kind {
  std::string Description::*text;
  uint64_t (wire::RankDigest::*hash)() const;
  void (wire::RankDigest::*set_hash)(uint64_t);
  bool (wire::RankTexts::*has)() const;
  const std::string& (wire::RankTexts::*said)() const;
  std::string* (wire::RankTexts::*say)();
  const char* name;
};
#define CCOM_KIND(kind)                                                                                       \
  Kind {                                                                                                      \
    &Description::kind, &wire::RankDigest::kind, &wire::RankDigest::set_##kind, &wire::RankTexts::has_##kind, \
        &wire::RankTexts::kind, &wire::RankTexts::mutable_##kind, #kind                                       \
  }
enum : size_t { kTerms, kHost, kMachine, kLocality, kCalibration };  // NOLINT(readability-identifier-naming): indices
constexpr std::array kKinds{CCOM_KIND(terms), CCOM_KIND(host), CCOM_KIND(machine), CCOM_KIND(locality),
                            CCOM_KIND(calibration)};
#undef CCOM_KIND

Result<Description> describe_self(const CommConfig& config) {
  if (config.emulate_scale > 0 && config.topology.empty()) {
    return error(Code::ConfigError, "CCOM_EMULATE_SCALE is set, but no topology whose speeds it could imitate")
        .with_cure("set CCOM_TOPOLOGY, e.g. to trn1.32xlarge, or unset CCOM_EMULATE_SCALE");
  }
  CCOM_TRY_ASSIGN(Host host, discover(config.sysfs_root, config.host_id, config.neuron));
  if (!config.topology.empty()) CCOM_TRY(impose(host, config.topology));
  if (!config.host_rack.empty()) {
    CCOM_TRY_ASSIGN(host.rack, rack_from(config.host_rack));
  }
  Description self;
  if (!config.ways_cache.empty()) self.ways = cached_ways(config.ways_cache, host.cpu_model, kVersion);
  if (!config.tuning.empty()) {
    Result<Calibration> measured = read_calibration(config.tuning);
    if (!measured) return std::move(measured).error().with_cure("correct the file, or unset CCOM_TUNING");
    self.ways = std::exchange(measured->ways, {});
    self.calibration = to_json(*measured);  // in its one form: files may be written differently
  }
  if (self.ways.processor != host.cpu_model) self.ways.starts = 0;  // its ways are a guide, its figures are none
  wire::Terms terms;
  terms.set_settings(config.fingerprint());
  CCOM_TRY_ASSIGN(*terms.mutable_plans(), read_plans(config.plan));
  self.terms = terms.SerializeAsString();
  wire::HostNames names;
  names.set_id(std::exchange(host.id, "-"));
  names.set_machine(std::exchange(host.machine, {}));
  names.set_name(std::exchange(host.name, {}));
  self.host = names.SerializeAsString();
  wire::Machine machine;
  machine.set_page_bytes(static_cast<uint64_t>(::sysconf(_SC_PAGESIZE)));
  machine.set_host(to_json(host));
  self.machine = machine.SerializeAsString();
  self.locality = to_json(discover_locality(config.sysfs_root));
  return self;
}

Result<wire::RankDigest> digest_of(const Result<Description>& self) {
  if (!self) return self.error();
  wire::RankDigest digest;
  for (const Kind& kind : kKinds) (digest.*kind.set_hash)(hash_of_text((*self).*kind.text));
  digest.set_ways(hash_of((*self).ways));
  digest.set_nonce(random_u64());
  return digest;
}

// The lowest rank that says the same as each.
std::vector<Rank> first_with(const std::vector<wire::RankDigest>& all, const Kind& kind) {
  std::unordered_map<uint64_t, Rank> first;
  std::vector<Rank> ranks;
  ranks.reserve(all.size());
  for (const wire::RankDigest& digest : all)
    ranks.push_back(first.try_emplace((digest.*kind.hash)(), static_cast<Rank>(ranks.size())).first->second);
  return ranks;
}

// By kind and rank: whose text is its own.
using Speakers = std::array<std::vector<Rank>, kKinds.size()>;

// All that ranks have said, each text read once.
class Descriptions {
 public:
  Descriptions(Speakers speakers, const std::vector<wire::RankTexts>& texts)
      : speakers_(std::move(speakers)), texts_(texts) {}

  Status read() {
    for (size_t kind = 0; kind < kKinds.size(); ++kind) {
      for (Rank rank = 0; rank < nranks(); ++rank) {
        const wire::RankTexts& said = texts_[static_cast<size_t>(rank)];
        if (speakers_[kind][static_cast<size_t>(rank)] != rank) continue;
        if (!(said.*kKinds[kind].has)()) return incomplete_part(kTextsPhase, rank, kKinds[kind].name);
        Status read = read_one(kind, rank, (said.*kKinds[kind].said)());
        if (!read.is_ok()) return std::move(read).in("rank " + std::to_string(rank) + ", hosts").with_peers({rank});
      }
    }
    return {};
  }

  int nranks() const { return static_cast<int>(texts_.size()); }
  const wire::Terms& terms(Rank rank) const { return terms_.at(speaker(kTerms, rank)); }
  uint64_t page_bytes(Rank rank) const { return machines_.at(speaker(kMachine, rank)).page_bytes; }

  // They lie in this object.
  std::vector<BorrowedView> views() {
    std::vector<BorrowedView> views;
    for (Rank rank = 0; rank < nranks(); ++rank) {
      const auto calibration = calibrations_.find(speaker(kCalibration, rank));
      views.push_back({&host(rank), &localities_.at(speaker(kLocality, rank)),
                       calibration == calibrations_.end() ? nullptr : &calibration->second});
    }
    return views;
  }

 private:
  struct KnownMachine {
    uint64_t page_bytes = 0;
    Host host;
  };

  Rank speaker(size_t kind, Rank rank) const { return speakers_[kind][static_cast<size_t>(rank)]; }

  // Of the ranks of a host that see the same.
  const Host& host(Rank rank) {
    const Rank names = speaker(kHost, rank), machine = speaker(kMachine, rank);
    const auto [place, is_new] = hosts_.try_emplace({names, machine});
    if (!is_new) return place->second;
    const wire::HostNames& own = names_.at(names);
    place->second = machines_.at(machine).host;
    place->second.id = own.id();
    place->second.machine = own.machine();
    place->second.name = own.name();
    return place->second;
  }

  Status read_one(size_t kind, Rank rank, const std::string& text) {
    switch (kind) {
      case kTerms: return parse_part(text, kTextsPhase, rank, terms_[rank]);
      case kHost: {
        CCOM_TRY(parse_part(text, kTextsPhase, rank, names_[rank]));
        return names_[rank].id().empty() ? incomplete_part(kTextsPhase, rank, "host") : Status();
      }
      case kMachine: {
        wire::Machine machine;
        CCOM_TRY(parse_part(text, kTextsPhase, rank, machine));
        CCOM_TRY_ASSIGN(Host host, host_from_json(machine.host()));
        machines_[rank] = {machine.page_bytes(), std::move(host)};
        return {};
      }
      case kLocality: {
        CCOM_TRY_ASSIGN(localities_[rank], locality_from_json(text));
        return {};
      }
      default: {
        if (text.empty()) return {};
        CCOM_TRY_ASSIGN(calibrations_[rank], calibration_from_json(text));
        return {};
      }
    }
  }

  const Speakers speakers_;
  const std::vector<wire::RankTexts>& texts_;
  // By the rank that has said it.
  std::map<Rank, wire::Terms> terms_;
  std::map<Rank, wire::HostNames> names_;
  std::map<Rank, KnownMachine> machines_;
  std::map<Rank, Locality> localities_;
  std::map<Rank, Calibration> calibrations_;
  std::map<std::pair<Rank, Rank>, Host> hosts_;  // by who has said the names and the machine
};

Status compare_terms(const wire::Terms& first, const wire::Terms& theirs, Rank rank) {
  if (first.settings() != theirs.settings()) {
    return error(ErrorKey::SettingsDiffer, "rank %d differs from rank 0 in settings: %s", rank,
                 difference_of_settings(theirs.settings(), first.settings()).c_str())
        .with_peers({rank})
        .with_cure("start all ranks with the same CCOM_* variables and config");
  }
  if (first.plans() == theirs.plans()) return {};
  return error(Code::ConfigError, "rank %d has other contents in its plan file (CCOM_PLAN) than rank 0", rank)
      .with_peers({rank})
      .with_cure("start all ranks with the same plan file");
}

// Processes under an emulator may have other pages than others on their host; what they map together has one layout.
Status compare_pages(const Descriptions& all, const Topology& topology) {
  std::vector<Rank> first(topology.hosts.size(), -1);  // rank of each host
  for (Rank rank = 0; rank < topology.nranks(); ++rank) {
    Rank& other = first[static_cast<size_t>(topology.ranks[static_cast<size_t>(rank)].host)];
    if (other < 0) other = rank;
    if (all.page_bytes(rank) == all.page_bytes(other)) continue;
    return error(Code::ConfigError, "rank %d has memory pages of %llu bytes, rank %d on the same host of %llu", rank,
                 static_cast<unsigned long long>(all.page_bytes(rank)), other,
                 static_cast<unsigned long long>(all.page_bytes(other)))
        .with_peers({rank})
        .with_cure("start the ranks of a host under the same kernel and emulator, or give them distinct CCOM_HOSTIDs");
  }
  return {};
}

// A job that saves them replaces the file when a communicator ends (CCOM_TUNING_SAVE), while ranks read it for the next
// one. All ranks of a host see whether they have read the same.
bool have_same_ways(const std::vector<wire::RankDigest>& all, const std::vector<Rank>& of_host) {
  const auto ways = [&](Rank rank) { return all[static_cast<size_t>(rank)].ways(); };
  return std::ranges::all_of(of_host, [&](Rank rank) { return ways(rank) == ways(of_host[0]); });
}

}  // namespace

Result<Agreement> agree(const Membership& membership, const CommConfig& config, Rendezvous& rendezvous,
                        Deadline deadline) {
  Result<Description> self = describe_self(config);
  CCOM_TRY_ASSIGN(const std::vector<wire::RankDigest> all, exchange(rendezvous, "hosts", digest_of(self), deadline));
  CCOM_ASSERT(all.size() == static_cast<size_t>(membership.nranks));
  Speakers speakers;
  wire::RankTexts mine;
  for (size_t kind = 0; kind < kKinds.size(); ++kind) {
    speakers[kind] = first_with(all, kKinds[kind]);
    if (speakers[kind][static_cast<size_t>(membership.rank)] == membership.rank)
      *(mine.*kKinds[kind].say)() = std::move((*self).*kKinds[kind].text);
  }
  CCOM_TRY_ASSIGN(const std::vector<wire::RankTexts> texts,
                  exchange(rendezvous, kTextsPhase, Result<wire::RankTexts>(std::move(mine)), deadline));
  Descriptions descriptions(std::move(speakers), texts);
  CCOM_TRY(descriptions.read());
  for (Rank rank = 0; rank < membership.nranks; ++rank)
    CCOM_TRY(compare_terms(descriptions.terms(0), descriptions.terms(rank), rank));
  Agreement agreement{{}, descriptions.terms(0).plans(), std::move((*self).ways), membership};
  CCOM_TRY_ASSIGN(agreement.topology, merge_borrowed(descriptions.views()));
  const int host = agreement.topology.ranks[static_cast<size_t>(membership.rank)].host;
  const std::vector<Rank> mates = agreement.topology.ranks_of(host);
  if (!have_same_ways(all, mates)) {
    agreement.ways = {};
    if (membership.rank == mates[0])
      log(config.tuning.empty() ? LogLevel::Info : LogLevel::Warn,
          "ranks of one host have read different ways from CCOM_TUNING=%s: they are ignored",
          config.tuning.empty() ? "auto" : config.tuning.c_str());
  }
  CCOM_TRY(compare_pages(descriptions, agreement.topology));
  const std::string nonce = std::to_string(all[0].nonce());
  const Secret numbers = membership.secret.derive("ccom number " + nonce);
  std::memcpy(&agreement.membership.communicator, numbers.bytes().data(), sizeof agreement.membership.communicator);
  agreement.membership.secret = membership.secret.derive("ccom session " + nonce);
  return agreement;
}

}  // namespace ccom
