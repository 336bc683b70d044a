// SPDX-License-Identifier: Apache-2.0
//
// What the planner has chosen, remembered, and shared by communicators for which it chooses alike: the parts into which
// one is split often have equal topologies, and to ask again for each takes as long as the rest of their start.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include "base/mutex.h"
#include "planner/planner.h"

namespace ccom {

// For one topology and its settings. Thread-safe.
class ProgramChoices {
 public:
  struct Chosen {
    explicit Chosen(Choice made) : choice(std::make_shared<const Choice>(std::move(made))) {}
    const std::shared_ptr<const Choice> choice;
    std::atomic<bool> is_proved{false};
  };
  ProgramChoices(Topology topology, Settings settings)
      : topology_(std::move(topology)), settings_(std::move(settings)) {}

  const Settings& settings() const { return settings_; }
  bool are_for(const Topology& topology, const Settings& settings) const;
  // Lives as long as this object.
  Result<Chosen*> get(const Question& question);
  // small_call_bytes() of the planner.
  size_t small_bytes(int host, bool is_rooted);

 private:
  const Topology topology_;
  const Settings settings_;
  Mutex mutex_;
  std::map<std::tuple<Collective, bool, bool, size_t, bool, SumOrder, Rank, size_t, UnitType>, std::unique_ptr<Chosen>>
      chosen_ CCOM_GUARDED_BY(mutex_);
  std::map<std::pair<int, bool>, size_t> small_bytes_ CCOM_GUARDED_BY(mutex_);
};

// Those of a communicator and of its parts. Thread-safe.
class SharedChoices {
 public:
  // Those of before, or new ones.
  std::shared_ptr<ProgramChoices> of(const Topology& topology, Settings settings);

 private:
  static constexpr size_t kKept = 16;
  Mutex mutex_;
  std::vector<std::shared_ptr<ProgramChoices>> latest_ CCOM_GUARDED_BY(mutex_);  // the latest last
};

}  // namespace ccom
