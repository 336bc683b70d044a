// SPDX-License-Identifier: Apache-2.0
//
// Publishes what the ranks of this process did (CCOM_METRICS): a file that is replaced every few seconds, or a loopback
// port. One thread per process, from the first communicator to the last; it reads the ranks' records as anybody does,
// so neither calls nor liveness ever wait for it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "metrics/target.h"
#include "observe/activity_record.h"

namespace ccom {

// A rank of this process whose record is to be published. What it refers to outlives the PublishedRank.
struct PublishedSource {
  uint64_t communicator = 0;
  std::string name{}, host{};
  Rank rank = -1;
  int ranks = 0, hosts = 0;
  int local_rank = 0;
  const ActivityRecord* record = nullptr;
  std::function<bool()> has_failed{};  // the communicator
};

class MetricsExporter;

// For as long as it lives. Where the file cannot be written or the port is taken, that is logged once, and no error.
// Its end waits for the file to be written once more, if it is the last one. Not shared with forked children.
class PublishedRank {
 public:
  PublishedRank() = default;
  PublishedRank(const MetricsTarget& target, PublishedSource source);
  PublishedRank(PublishedRank&& other) noexcept;
  PublishedRank& operator=(PublishedRank&& other) noexcept;
  ~PublishedRank();

 private:
  std::shared_ptr<MetricsExporter> exporter_;
  uint64_t number_ = 0;
};

}  // namespace ccom
