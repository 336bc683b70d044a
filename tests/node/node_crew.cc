// SPDX-License-Identifier: Apache-2.0
#include "tests/node/node_crew.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/harness/threads.h"

namespace ccom {
namespace {

size_t round_to_page(size_t bytes) { return (bytes + kNodePageBytes - 1) / kNodePageBytes * kNodePageBytes; }

}  // namespace

NodeCrew::NodeCrew(const Settings& settings) : settings_(settings), tasks_(static_cast<size_t>(settings.ranks)) {
  const size_t board = round_to_page(Monitor::board_bytes(settings.ranks));
  const NodeLayout layout{settings.ranks, settings.bank_bytes};
  segment_ = *SharedSegment::create(board + layout.region_bytes(), board);
  arena_ = *Arena::create(size_t{256} << 20);
  std::vector<Rank> ranks;
  for (Rank rank = 0; rank < settings.ranks; ++rank) ranks.push_back(rank);
  std::array<uint8_t, 32> key{};
  for (const Rank rank : ranks) {
    MonitorConfig monitor{.rank = rank,
                          .hosts = {{"here", ranks}},
                          .host_index = 0,
                          .key = Secret(std::span<const uint8_t, 32>(key)),
                          .communicator = 1,
                          .dead_ms = 3000,
                          .bind_address = "127.0.0.1"};
    monitors_.push_back(*Monitor::create(monitor, segment_->bytes().first(board), rank == 0));
  }
  for (const Rank rank : ranks) {
    NodeConfig config;
    config.barrier.local_rank = rank;
    config.barrier.ranks = ranks;
    config.barrier.asymmetric = settings.asymmetric && AsymmetricFence::available();
    config.barrier.policy = WaitPolicy::for_host(settings.ranks, 2);
    config.layout = layout;
    config.segment = segment_.get();
    config.region_offset = board;
    config.claims_mail = true;
    const bool one = settings.within == Within::OneProcess;
    config.peers.assign(ranks.size(), LocalPeer{one, arena_->segment().bytes(), ::getpid()});
    config.arena = arena_.get();
    config.means = {settings.within == Within::Arenas, settings.reads};
    for (const CollectiveTraits& traits : kCollectiveTraits)
      config.small_bytes[static_cast<size_t>(traits.collective)] =
          std::min(settings.small_bytes, layout.small_bytes(is_rooted(traits.collective)));
    config.prove = settings.prove;
    Monitor& monitor = *monitors_[static_cast<size_t>(rank)];
    groups_.push_back(std::make_unique<ShmCollectives>(
        config, monitor,
        [](const CallWords& words) {
          return "call " + std::to_string(words[1]) + " of " + std::to_string(words[2]) + " elements";
        },
        [&monitor](const Status& cause) { return monitor.report(cause); }));
    const Status opened = groups_.back()->open();
    EXPECT_TRUE(opened.is_ok()) << opened.message();
  }
}

NodeCrew::~NodeCrew() = default;

void NodeCrew::run(const std::function<void(int, ShmCollectives&)>& run) {
  run_ranks(ranks(), [&](int rank) { run(rank, group(rank)); });
}

PreparedTask& NodeCrew::prepared(int rank, const NodeTask& task, const NodeChoice& choice) {
  auto& tasks = tasks_[static_cast<size_t>(rank)];
  for (const auto& each : tasks) {
    if (each->task() == task && each->choice() == choice) return *each;
  }
  return *tasks.emplace_back(std::make_unique<PreparedTask>(task, std::vector{choice}, rank));
}

std::span<std::byte> NodeCrew::staging_of(int rank) const {
  const NodeLayout layout{settings_.ranks, settings_.bank_bytes};
  const size_t board = round_to_page(Monitor::board_bytes(settings_.ranks));
  const size_t begin = board + layout.block_offset(rank) + layout.mail_bytes();
  return segment_->bytes().subspan(begin, layout.staging_bytes());
}

CallWords words_of(const NodeCall& call, uint64_t sequence) {
  const NodeTask& task = call.task->task();
  return {1, sequence, call.count,
          static_cast<uint64_t>(task.collective) | static_cast<uint64_t>(call.type) << 8 |
              static_cast<uint64_t>(call.op) << 16 | static_cast<uint64_t>(static_cast<uint32_t>(task.root)) << 32,
          0};
}

}  // namespace ccom
