// SPDX-License-Identifier: Apache-2.0
#include "setup/agreement.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <utility>

#include "base/log.h"
#include "setup/exchange.h"
#include "setup/exchanges.pb.h"

namespace ccom {
namespace {

// What they mean is the planner's affair.
Result<std::string> read_plans(const std::string& path) {
  if (path.empty()) return std::string();
  std::ifstream file(path);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  if (!file || text.empty()) {
    return error(ErrorKey::PlanFile, "CCOM_PLAN=%s cannot be read, or is empty", path.c_str())
        .with_cure("name a file that every rank can read, or unset CCOM_PLAN");
  }
  return text;
}

// ways: those of the tuning file. The file is there for each rank: what may be long is compared by its hash alone.
Result<wire::RankDescription> describe_self(const CommConfig& config, LearnedWays& ways) {
  if (config.emulate_scale > 0 && config.topology.empty()) {
    return error(Code::ConfigError, "CCOM_EMULATE_SCALE is set, but no topology whose speeds it could imitate")
        .with_cure("set CCOM_TOPOLOGY, e.g. to trn1.32xlarge, or unset CCOM_EMULATE_SCALE");
  }
  CCOM_TRY_ASSIGN(Host host, discover(config.sysfs_root, config.host_id, config.neuron));
  if (!config.topology.empty()) CCOM_TRY(impose(host, config.topology));
  if (!config.host_rack.empty()) {
    CCOM_TRY_ASSIGN(host.rack, rack_from(config.host_rack));
  }
  std::string calibration;  // in its one form: files may be written differently
  if (!config.tuning.empty()) {
    Result<Calibration> measured = read_calibration(config.tuning);
    if (!measured) return std::move(measured).error().with_cure("correct the file, or unset CCOM_TUNING");
    ways = std::exchange(measured->ways, {});
    calibration = to_json(*measured);
  }
  CCOM_TRY_ASSIGN(const std::string plans, read_plans(config.plan));
  wire::RankDescription self;
  self.set_page_bytes(static_cast<uint64_t>(::sysconf(_SC_PAGESIZE)));
  self.set_settings(config.fingerprint());
  self.set_plans(plans);
  self.set_host(to_json(host));
  self.set_locality(to_json(discover_locality(config.sysfs_root)));
  self.set_calibration(calibration);
  self.set_ways(hash_of(ways));
  self.set_nonce(random_u64());
  return self;
}

Status compare_settings(const std::string& first, const std::string& theirs, Rank rank) {
  if (first == theirs) return {};
  return error(ErrorKey::SettingsDiffer, "rank %d differs from rank 0 in settings: %s", rank,
               difference_of_settings(theirs, first).c_str())
      .with_peers({rank})
      .with_cure("start all ranks with the same CCOM_* variables and config");
}

// Processes under an emulator may have other pages than others on their host; what they map together has one layout.
Status compare_pages(const std::vector<wire::RankDescription>& all, const Topology& topology) {
  for (int host = 0; host < static_cast<int>(topology.hosts.size()); ++host) {
    const std::vector<Rank> ranks = topology.ranks_of(host);
    for (const Rank rank : ranks) {
      const uint64_t first = all[static_cast<size_t>(ranks[0])].page_bytes();
      const uint64_t theirs = all[static_cast<size_t>(rank)].page_bytes();
      if (first == theirs) continue;
      return error(Code::ConfigError, "rank %d has memory pages of %llu bytes, rank %d on the same host of %llu", rank,
                   static_cast<unsigned long long>(theirs), ranks[0], static_cast<unsigned long long>(first))
          .with_peers({rank})
          .with_cure(
              "start the ranks of a host under the same kernel and emulator, or give them distinct CCOM_HOSTIDs");
    }
  }
  return {};
}

// A job that saves them replaces the file when a communicator ends (CCOM_TUNING_SAVE), while ranks read it for the next
// one. All ranks see whether they have read the same.
bool have_same_ways(const std::vector<wire::RankDescription>& all) {
  return std::ranges::all_of(all, [&](const wire::RankDescription& theirs) { return theirs.ways() == all[0].ways(); });
}

Result<RankView> view_of(const wire::RankDescription& description) {
  CCOM_TRY_ASSIGN(Host host, host_from_json(description.host()));
  CCOM_TRY_ASSIGN(Locality locality, locality_from_json(description.locality()));
  RankView view{std::move(host), std::move(locality)};
  if (!description.calibration().empty()) {
    CCOM_TRY_ASSIGN(view.calibration, calibration_from_json(description.calibration()));
  }
  return view;
}

}  // namespace

Result<Agreement> agree(const Membership& membership, const CommConfig& config, Rendezvous& rendezvous,
                        Deadline deadline) {
  LearnedWays ways;
  CCOM_TRY_ASSIGN(const std::vector<wire::RankDescription> all,
                  exchange(rendezvous, "hosts", describe_self(config, ways), deadline));
  CCOM_ASSERT(all.size() == static_cast<size_t>(membership.nranks));
  std::vector<RankView> views;
  for (Rank rank = 0; rank < membership.nranks; ++rank) {
    const wire::RankDescription& theirs = all[static_cast<size_t>(rank)];
    CCOM_TRY(compare_settings(all[0].settings(), theirs.settings(), rank));
    if (all[0].plans() != theirs.plans()) {
      return error(Code::ConfigError, "rank %d has other contents in its plan file (CCOM_PLAN) than rank 0", rank)
          .with_peers({rank})
          .with_cure("start all ranks with the same plan file");
    }
    Result<RankView> view = view_of(theirs);
    if (!view) return std::move(view).error().in("rank " + std::to_string(rank) + ", hosts").with_peers({rank});
    views.push_back(*std::move(view));
  }
  Agreement agreement{{}, all[0].plans(), std::move(ways), membership};
  CCOM_TRY_ASSIGN(agreement.topology, merge(views));
  if (!have_same_ways(all)) {
    agreement.ways = {};
    if (membership.rank == 0)
      log(LogLevel::Warn, "ranks have read different ways from CCOM_TUNING=%s: they are ignored",
          config.tuning.c_str());
  }
  CCOM_TRY(compare_pages(all, agreement.topology));
  const std::string nonce = std::to_string(all[0].nonce());
  const Secret numbers = membership.secret.derive("ccom number " + nonce);
  std::memcpy(&agreement.membership.communicator, numbers.bytes().data(), sizeof agreement.membership.communicator);
  agreement.membership.secret = membership.secret.derive("ccom session " + nonce);
  return agreement;
}

}  // namespace ccom
