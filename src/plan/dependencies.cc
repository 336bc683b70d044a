// SPDX-License-Identifier: Apache-2.0
#include "plan/dependencies.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "base/assert.h"

namespace ccom {

Cells::Cells(const Plan& plan)
    : input_(plan.input_blocks()),
      output_(plan.output_blocks()),
      count_(input_ + output_ + plan.scratch_slots),
      shift_(plan.output_shift()),
      in_place_(plan.in_place) {}

uint32_t Cells::of(Buffer buffer, uint32_t index) const {
  switch (buffer) {
    case Buffer::Input: return index;
    case Buffer::Output: {
      const int64_t twin = static_cast<int64_t>(index) - shift_;
      if (in_place_ && twin >= 0 && twin < input_) return static_cast<uint32_t>(twin);
      return input_ + index;
    }
    case Buffer::Scratch: return input_ + output_ + index;
  }
  return 0;
}

namespace {

// Who touched a cell last: its writer, and the readers since.
struct History {
  uint32_t writer = Dependencies::kNone;
  std::vector<uint32_t> readers;
};

class Derivation {
 public:
  explicit Derivation(const Plan& plan)
      : plan_(plan), cells_(plan), history_(cells_.count()), before_(plan.steps.size()) {}

  Dependencies run() {
    const auto steps = static_cast<uint32_t>(plan_.steps.size());
    Dependencies result;
    result.next_on_channel.assign(steps, Dependencies::kNone);
    result.waits_for.assign(steps, 0);
    for (uint32_t s = 0; s < steps; ++s) {
      note_step(s);
      order_on_channel(s, result);
    }
    collect(result);
    return result;
  }

 private:
  void note_step(uint32_t s) {
    const Step& step = plan_.steps[s];
    if (step.reads_source()) {
      for (uint32_t i = 0; i < step.source_count(); ++i) note_read(s, cells_.of(step.source_buffer, step.source + i));
    }
    if (step.writes_target()) {
      for (uint32_t i = 0; i < step.count; ++i) note_write(s, cells_.of(step.target_buffer, step.target + i));
    }
    auto& before = before_[s];
    std::ranges::sort(before);
    before.erase(std::ranges::unique(before).begin(), before.end());
  }

  void note_read(uint32_t s, uint32_t cell) {
    History& history = history_[cell];
    if (history.writer != Dependencies::kNone) before_[s].push_back(history.writer);
    history.readers.push_back(s);
  }

  // A write also waits for the reads since the last write; those imply the last write itself.
  void note_write(uint32_t s, uint32_t cell) {
    History& history = history_[cell];
    if (history.readers.empty() && history.writer != Dependencies::kNone) before_[s].push_back(history.writer);
    for (const uint32_t reader : history.readers) {
      if (reader != s) before_[s].push_back(reader);
    }
    history.readers.clear();
    history.writer = s;
  }

  void order_on_channel(uint32_t s, Dependencies& result) {
    const Step& step = plan_.steps[s];
    if (!step.is_transfer()) return;
    const auto [last, first_on_channel] = last_.try_emplace({step.peer, step.channel, step.is_receive()}, s);
    if (first_on_channel) return;
    result.next_on_channel[last->second] = s;
    ++result.waits_for[s];
    last->second = s;
  }

  void collect(Dependencies& result) {
    const size_t steps = plan_.steps.size();
    result.first_successor.assign(steps + 1, 0);
    for (size_t s = 0; s < steps; ++s) {
      result.waits_for[s] += static_cast<uint32_t>(before_[s].size());
      for (const uint32_t earlier : before_[s]) ++result.first_successor[earlier + 1];
    }
    for (size_t s = 0; s < steps; ++s) result.first_successor[s + 1] += result.first_successor[s];
    result.successors.resize(result.first_successor[steps]);
    std::vector<uint32_t> fill(result.first_successor.begin(), result.first_successor.end() - 1);
    for (uint32_t s = 0; s < steps; ++s) {
      for (const uint32_t earlier : before_[s]) result.successors[fill[earlier]++] = s;
    }
  }

  const Plan& plan_;
  Cells cells_;
  std::vector<History> history_;
  std::vector<std::vector<uint32_t>> before_;
  std::map<std::tuple<Rank, uint8_t, bool>, uint32_t> last_;
};

}  // namespace

Dependencies derive_dependencies(const Plan& plan) { return Derivation(plan).run(); }

}  // namespace ccom
