// SPDX-License-Identifier: Apache-2.0
#include "setup/agreement.h"

#include <cstring>
#include <nlohmann/json.hpp>

#include "base/version.h"

namespace ccom {
namespace {

Result<std::string> describe_self(const CommConfig& config) {
  if (config.emulate_scale > 0 && config.topology.empty()) {
    return error(Code::ConfigError, "CCOM_EMULATE_SCALE is set, but no topology whose speeds it could imitate")
        .with_cure("set CCOM_TOPOLOGY, e.g. to trn1.32xlarge, or unset CCOM_EMULATE_SCALE");
  }
  CCOM_TRY_ASSIGN(Host host, discover(config.sysfs_root, config.host_id, config.neuron));
  if (!config.topology.empty()) CCOM_TRY(impose(host, config.topology));
  std::string calibration;  // in its one form: files may be written differently
  if (!config.tuning.empty()) {
    Result<Calibration> measured = read_calibration(config.tuning);
    if (!measured) return std::move(measured).error().with_cure("correct the file, or unset CCOM_TUNING");
    calibration = to_json(*measured);
  }
  return nlohmann::json{{"version", kVersion},        {"settings", config.fingerprint()},
                        {"host", to_json(host)},      {"locality", to_json(discover_locality(config.sysfs_root))},
                        {"calibration", calibration}, {"nonce", std::to_string(random_u64())}}
      .dump();
}

Status compare(const nlohmann::json& mine, const nlohmann::json& theirs, Rank rank, const char* key) {
  if (!theirs.contains(key) || !theirs[key].is_string()) {
    return error(Code::InternalError, "rank %d sent a description that cannot be read", rank).with_peers({rank});
  }
  const auto ours = mine[key].get<std::string>();
  const auto other = theirs[key].get<std::string>();
  if (ours == other) return {};
  return error(Code::ConfigError, "rank %d differs from rank 0 in %s: '%s' against '%s'", rank, key, other.c_str(),
               ours.c_str())
      .with_peers({rank})
      .with_cure("start all ranks with the same version of ccom and the same CCOM_* variables and config");
}

}  // namespace

Result<Agreement> agree(const Membership& membership, const CommConfig& config, Rendezvous& rendezvous,
                        Deadline deadline) {
  CCOM_TRY_ASSIGN(const std::vector<std::string> texts, exchange(rendezvous, "hosts", describe_self(config), deadline));
  CCOM_ASSERT(texts.size() == static_cast<size_t>(membership.nranks));
  std::vector<RankView> views;
  const nlohmann::json first = nlohmann::json::parse(texts[0], nullptr, false);
  for (Rank rank = 0; rank < membership.nranks; ++rank) {
    const nlohmann::json view = nlohmann::json::parse(texts[static_cast<size_t>(rank)], nullptr, false);
    if (!view.is_object()) return error(Code::InternalError, "rank %d sent a description that cannot be read", rank);
    CCOM_TRY(compare(first, view, rank, "version"));
    CCOM_TRY(compare(first, view, rank, "settings"));
    CCOM_TRY_ASSIGN(Host host, host_from_json(view.value("host", "")));
    CCOM_TRY_ASSIGN(Locality locality, locality_from_json(view.value("locality", "")));
    views.push_back({std::move(host), std::move(locality)});
    const std::string calibration = view.value("calibration", "");
    if (calibration.empty()) continue;
    CCOM_TRY_ASSIGN(views.back().calibration, calibration_from_json(calibration));
  }
  Agreement agreement{{}, membership};
  CCOM_TRY_ASSIGN(agreement.topology, merge(views));
  const std::string nonce = first.value("nonce", "");
  const Secret numbers = membership.secret.derive("ccom number " + nonce);
  std::memcpy(&agreement.membership.communicator, numbers.bytes().data(), sizeof agreement.membership.communicator);
  agreement.membership.secret = membership.secret.derive("ccom session " + nonce);
  return agreement;
}

}  // namespace ccom
