// SPDX-License-Identifier: Apache-2.0
//
// A communicator's settings, resolved: config fields where given, else environment, else defaults. Read once.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/measured_costs.h"
#include "base/status.h"
#include "base/tcp_socket.h"
#include "base/types.h"
#include "kernels/kernels.h"
#include "metrics/target.h"
#include "topology/topology.h"

namespace ccom {

// Which ranks of a host exchange with other hosts, see algorithms/hierarchical.h.
enum class InterHostMode { Auto, One, All };

// When connections between hosts are made: at the start, all of them, or when a plan uses them first.
enum class Connect { Auto, Start, Use };

// What the bits of a reduction may depend on besides its inputs: the communicator's shape and how it runs there, or
// nothing (SumOrder::Canonical).
enum class Determinism { Shape, Full };

struct CommConfig {
  std::string name;
  MetricsTarget metrics;
  int64_t timeout_ms = 300000;
  int64_t init_timeout_ms = 60000;
  std::vector<std::string> transports;  // in order of preference; empty: automatic
  std::string algorithm;
  std::string topology;
  std::string plan;         // path of a plan file; its contents are compared
  std::string tuning;       // path of a calibration; its contents are compared, see merge()
  std::string tuning_save;  // path where what calls find out is kept; empty: not in a file of the user's choice
  std::string ways_cache;   // folder where it is kept for the next job, which begins with it; empty: it is not
  std::optional<OwnCosts> known_own;  // of earlier starts; the processor is not measured anew
  bool tries_ways = true;             // calls find out how they run fastest, see CallChoices
  double emulate_scale = 0;           // of the topology's speeds; 0: they are not imitated
  std::string ifname;
  std::string host_rack;  // as rack_from() takes it; hosts differ
  std::string tcp_rails;  // empty: as ifname
  std::string host_id;
  std::string ofi_provider;            // empty: automatic
  std::vector<std::string> ofi_rails;  // likewise
  std::string sysfs_root;
  NeuronHints neuron;  // what discovery is told
  int64_t max_memory = 0;
  InterHostMode crossing = InterHostMode::Auto;
  int64_t dead_ms = 3000;
  int64_t warn_ms = 30000;
  int tcp_streams = 0;  // 0: automatic
  Connect connect = Connect::Auto;
  bool crc = true;
  bool tls = false;
  bool verify = false;  // programs are proved before they run
  PortRange ports;
  Rounding rounding = Rounding::NearestEven;
  bool rounds_once = false;  // sums of narrow floats; always, if the rounding is stochastic
  int64_t rounding_seed = 0;
  Determinism determinism = Determinism::Shape;
  UnitType wire = UnitType::Call;  // as what sums cross hosts
  bool witness = false;            // results that must be equal on all ranks are compared
  bool messages = false;
  bool blocking = true;  // of starts and ends
  Interrupted interrupted;
  bool interrupted_often = false;

  // From the environment. ConfigError names the variable.
  static Result<CommConfig> from_environment();
  // "shm,tcp" -> transports, checked.
  Status set_transports(const std::string& list);
  // "auto", "one" or "all".
  Status set_crossing(const std::string& kind);
  // "auto", "start" or "use".
  Status set_connect(const std::string& kind);
  // "auto", "off", or the path of a calibration.
  void set_tuning(const std::string& text);
  // "auto", "off", or a path. cache: of the user. After set_tuning() and set_emulate_scale().
  void set_tuning_save(const std::string& text, const std::string& cache);
  // "" or a number above 0, up to 1.
  Status set_emulate_scale(const std::string& number);
  // "nearest", "once" or "stochastic".
  Status set_rounding(const std::string& kind);
  // "shape" or "full".
  Status set_determinism(const std::string& kind);
  // "off", "fp8" or "int8".
  Status set_wire(const std::string& kind);
  // Settings that contradict each other: InvalidArgument.
  Status check() const;
  // What must be equal on all ranks: a line NAME=VALUE for each setting.
  std::string fingerprint() const;
};

// Of two fingerprints that differ: "CCOM_TLS (1 against 0)".
std::string difference_of_settings(const std::string& theirs, const std::string& first);

}  // namespace ccom
