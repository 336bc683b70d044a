// SPDX-License-Identifier: Apache-2.0
#include "tests/liveness/cluster.h"

#include <filesystem>
#include <stdexcept>
#include <thread>

namespace ccom::test {

Cluster::Cluster(std::vector<int> layout, int64_t dead_ms, bool tls) : dead_ms_(dead_ms), tls_(tls) {
  Rank next = 0;
  for (size_t h = 0; h < layout.size(); ++h) {
    hosts_.push_back({.name = "host" + std::to_string(h), .ranks = {}});
    for (int i = 0; i < layout[h]; ++i) hosts_.back().ranks.push_back(next++);
    boards_.emplace_back(Monitor::board_bytes(layout[h]) / 64 + 1);
  }
  for (Rank rank = 0; rank < next; ++rank) {
    MonitorConfig config = config_of(rank);
    const auto host = static_cast<size_t>(config.host_index);
    const bool leads = hosts_[host].ranks.front() == rank;
    auto monitor = Monitor::create(std::move(config), std::as_writable_bytes(std::span(boards_[host])), leads);
    if (!monitor) throw std::runtime_error(monitor.error().message());
    monitors_.push_back(*std::move(monitor));
  }
}

Cluster::~Cluster() = default;

MonitorConfig Cluster::config_of(Rank rank) const {
  MonitorConfig config{.rank = rank,
                       .hosts = hosts_,
                       .host_index = 0,
                       .key = key_,
                       .communicator = 42,
                       .dead_ms = dead_ms_,
                       .bind_address = "127.0.0.1",
                       .tls = tls_};
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
  std::vector<std::thread> threads;
  for (size_t r = 0; r < monitors_.size(); ++r)
    threads.emplace_back([&, r] { outcomes[r] = monitors_[r]->connect(all, Deadline::after_ms(timeout_ms)); });
  for (auto& thread : threads) thread.join();
  for (const Status& outcome : outcomes) CCOM_TRY(outcome);
  return Status::ok();
}

bool Cluster::all_fail(int64_t within_ms) {
  const Deadline deadline = Deadline::after_ms(within_ms);
  for (const auto& monitor : monitors_)
    while (monitor && !monitor->failed()) {
      if (deadline.passed()) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  return true;
}

namespace {
int entries(const char* folder) {
  return static_cast<int>(
      std::distance(std::filesystem::directory_iterator(folder), std::filesystem::directory_iterator()));
}
}  // namespace

int open_descriptors() { return entries("/proc/self/fd"); }
int running_threads() { return entries("/proc/self/task"); }

}  // namespace ccom::test
