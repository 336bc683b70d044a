// SPDX-License-Identifier: Apache-2.0
//
// What ccom-status and ccom-top make of boards that say anything.
#include <nlohmann/json.hpp>

#include "liveness/board.h"
#include "tests/fuzz/memory.h"
#include "tests/fuzz/target.h"
#include "tools/jobs/json.h"
#include "tools/jobs/report.h"
#include "tools/top/model.h"

namespace ccom {
namespace {

using fuzz::Memory;
using fuzz::Reader;
using fuzz::require;

constexpr int kSlots = 3;

CommunicatorSeen communicator_from(Reader& reader, uint64_t number) {
  const Memory memory(Board::bytes(kSlots));
  Reader bytes(reader.take(1 + reader.below(512)));
  memory.fill(bytes);
  const Board board = Board::over(memory.bytes(), kSlots).value();
  CommunicatorSeen seen{.number = number, .parent = number - 1, .name = "name", .ranks = kSlots, .hosts = 1, .age = 1};
  for (Rank rank = 0; rank < kSlots; ++rank) {
    RankSeen& one = seen.seen.emplace_back();
    one.host = "host";
    one.activity = read_activity(board.slot(rank).activity, 1'000'000'000, reader.below(2) == 0);
    one.activity.rank = rank;
    one.totals = totals_of(board.slot(rank).activity.counters);
    if (reader.below(4) == 0) one.told_before = static_cast<double>(reader.number<uint16_t>()) / 100;
  }
  return seen;
}

void check_lines(const TopModel& model, size_t width, size_t height) {
  const std::vector<TopLine> lines = model.lines(width, height);
  require(height == 0 || lines.size() <= height);
  for (const TopLine& line : lines)
    for (const char c : line.text) require(static_cast<unsigned char>(c) >= ' ');
}

// Two looks at up to three communicators, and keys.
CCOM_FUZZ_TARGET(jobs_seen) {
  Reader reader(input);
  TopModel model(1);
  for (int look = 1; look <= 2; ++look) {
    HostSeen seen{.at_ns = look * 1'000'000'000LL};
    const size_t communicators = reader.below(4);
    for (size_t i = 0; i < communicators; ++i) seen.communicators.push_back(communicator_from(reader, i + 1));
    const Health health = judge(seen, 1);
    require(nlohmann::json::accept(to_json(seen, health, model.rates())));
    for (const char c : to_text(seen, health)) require(static_cast<unsigned char>(c) >= ' ' || c == '\n');
    model.add(std::move(seen));
    for (int key = 0; key < 4; ++key) {
      model.press(static_cast<TopModel::Key>(reader.below(static_cast<size_t>(TopModel::Key::Help) + 1)));
      check_lines(model, 80, 24);
      check_lines(model, reader.below(200), reader.below(60));
    }
  }
}

}  // namespace
}  // namespace ccom
