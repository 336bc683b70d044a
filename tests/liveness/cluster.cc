// SPDX-License-Identifier: Apache-2.0
#include "tests/liveness/cluster.h"

#include <algorithm>
#include <stdexcept>

#include "tests/harness/threads.h"
#include "tests/harness/waiting.h"

namespace ccom::test {

Cluster::Cluster(std::vector<int> layout, int64_t dead_ms, bool tls) : dead_ms_(dead_ms), tls_(tls) {
  Rank next = 0;
  for (size_t h = 0; h < layout.size(); ++h) {
    hosts_.push_back({.name = "host" + std::to_string(h), .ranks = {}});
    for (int i = 0; i < layout[h]; ++i) hosts_.back().ranks.push_back(next++);
    boards_.emplace_back(Monitor::board_bytes(layout[h]) / 64 + 1);
  }
  create();
}

Cluster::Cluster(Cluster& whole, const std::vector<Rank>& ranks)
    : dead_ms_(whole.dead_ms_), tls_(whole.tls_), communicator_(random_u64()) {
  for (const HostMembers& host : whole.hosts_) {
    HostMembers mine{.name = host.name, .ranks = {}};
    for (size_t i = 0; i < ranks.size(); ++i)
      if (std::ranges::binary_search(host.ranks, ranks[i])) mine.ranks.push_back(static_cast<Rank>(i));
    if (mine.ranks.empty()) continue;
    boards_.emplace_back(Monitor::board_bytes(static_cast<int>(mine.ranks.size())) / 64 + 1);
    hosts_.push_back(std::move(mine));
  }
  for (const Rank rank : ranks) {
    members_.push_back(whole.members_.empty() ? rank : whole.members_[static_cast<size_t>(rank)]);
    families_.push_back(whole[rank].family());
  }
  create();
}

void Cluster::create() {
  std::vector<std::vector<HeldConnection>> held;
  for (const auto& family : families_) held.push_back(family->held(tls_));
  for (const HostMembers& host : hosts_) {
    for (const Rank rank : host.ranks) {
      MonitorConfig config = config_of(rank);
      const auto index = static_cast<size_t>(config.host_index);
      const bool leads = host.ranks.front() == rank;
      auto monitor = Monitor::create(std::move(config), std::as_writable_bytes(std::span(boards_[index])), leads);
      if (!monitor) throw std::runtime_error(monitor.error().message());
      monitors_.push_back(*std::move(monitor));
    }
  }
  families_.clear();  // given up on the liveness thread
  for (const auto& monitor : monitors_)
    if (const Status prepared = monitor->prepare(held); !prepared.is_ok()) throw std::runtime_error(prepared.message());
}

Cluster::~Cluster() = default;

MonitorConfig Cluster::config_of(Rank rank) const {
  MonitorConfig config{.rank = rank,
                       .hosts = hosts_,
                       .host_index = 0,
                       .key = key_,
                       .communicator = communicator_,
                       .dead_ms = dead_ms_,
                       .bind_address = "127.0.0.1",
                       .tls = tls_,
                       .members = members_};
  if (!families_.empty()) config.family = families_[static_cast<size_t>(rank)];
  while (hosts_[static_cast<size_t>(config.host_index)].ranks.back() < rank) ++config.host_index;
  return config;
}

std::vector<Monitor::Addresses> Cluster::addresses() const {
  std::vector<Monitor::Addresses> all;
  for (const auto& monitor : monitors_) all.push_back(monitor->addresses());
  return all;
}

Status Cluster::connect(const std::vector<Monitor::Addresses>& all, int64_t timeout_ms) {
  std::vector<Status> outcomes(monitors_.size());
  run_ranks(static_cast<int>(monitors_.size()),
            [&](size_t r) { outcomes[r] = monitors_[r]->connect(all, Deadline::after_ms(timeout_ms)); });
  for (const Status& outcome : outcomes) CCOM_TRY(outcome);
  return Status::ok();
}

bool Cluster::all_fail(int64_t within_ms) {
  const auto fails = [](const auto& monitor) { return !monitor || monitor->failed(); };
  return wait_until([&] { return std::ranges::all_of(monitors_, fails); }, std::chrono::milliseconds(within_ms));
}

}  // namespace ccom::test
