// SPDX-License-Identifier: Apache-2.0
//
// Where metrics go: the value of CCOM_METRICS. Pure.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "base/types.h"

namespace ccom {

// A file that is replaced every few seconds, or a loopback port; neither: nowhere. A value.
struct MetricsTarget {
  std::string path{};     // as written: with %r, %p
  std::string address{};  // of the loopback interface
  uint16_t port = 0;      // of the host's first rank, the next one's is one greater

  bool is_file() const { return !path.empty(); }
  bool is_port() const { return !address.empty(); }
  bool is_any() const { return is_file() || is_port(); }
};

// "", "FILE", "tcp://127.0.0.1:9400", "tcp://[::1]:9400" or "tcp://localhost:9400". ConfigError for everything else,
// above all for addresses that other hosts reach.
Result<MetricsTarget> parse_metrics_target(const std::string& text);

// "/run/ccom-%r.prom" -> "/run/ccom-3.prom"; %p is the process's id, %% a percent sign.
std::string metrics_path(const std::string& path, Rank rank, int pid);
// Whether ranks of one host get different files.
bool tells_ranks_apart(const std::string& path);

}  // namespace ccom
