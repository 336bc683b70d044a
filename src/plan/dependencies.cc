// SPDX-License-Identifier: Apache-2.0
#include "plan/dependencies.h"

#include <algorithm>
#include <unordered_map>

#include "plan/run_map.h"

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

constexpr uint32_t kNone = Dependencies::kNone;
constexpr uint64_t kEgresses = uint64_t{1} << 63;  // no channel's number

// Who touched the cells of a run last: their writer, and the readers since, as a list that runs cut from one share.
struct History {
  uint32_t writer = kNone;
  uint32_t readers = kNone;  // into Derivation::readers_
  History at(uint32_t) const { return *this; }
  friend bool operator==(const History&, const History&) = default;
};

class Derivation {
 public:
  explicit Derivation(const Plan& plan) : plan_(plan), cells_(plan), history_(cells_.count(), {}) {}

  Dependencies run() {
    const auto steps = static_cast<uint32_t>(plan_.steps.size());
    Dependencies result;
    result.next_on_channel.assign(steps, kNone);
    result.waits_for.assign(steps, 0);
    first_before_.reserve(steps + 1);
    before_.reserve(2 * size_t{steps});
    for (uint32_t s = 0; s < steps; ++s) {
      first_before_.push_back(static_cast<uint32_t>(before_.size()));
      note_step(s);
      order_on_channel(s, result);
    }
    first_before_.push_back(static_cast<uint32_t>(before_.size()));
    collect(result);
    return result;
  }

 private:
  struct Reader {
    uint32_t step;
    uint32_t next;
  };

  void note_step(uint32_t s) {
    const Step& step = plan_.steps[s];
    if (step.reads_source()) {
      cells_.for_each_run(step.source_buffer, step.source, step.source_count(),
                          [this, s](uint32_t first, uint32_t count) { note_read(s, first, count); });
    }
    if (step.writes_target()) {
      cells_.for_each_run(step.target_buffer, step.target, step.count,
                          [this, s](uint32_t first, uint32_t count) { note_write(s, first, count); });
    }
    const auto begin = before_.begin() + first_before_[s];
    std::sort(begin, before_.end());
    before_.erase(std::unique(begin, before_.end()), before_.end());
  }

  void note_read(uint32_t s, uint32_t first, uint32_t count) {
    history_.update(first, count, [this, s](History& history) {
      if (history.writer != kNone) before_.push_back(history.writer);
      readers_.push_back({s, history.readers});
      history.readers = static_cast<uint32_t>(readers_.size() - 1);
    });
  }

  // A write also waits for the reads since the last write; those imply the last write itself.
  void note_write(uint32_t s, uint32_t first, uint32_t count) {
    history_.visit(first, count, [this, s](uint32_t, uint32_t, const History& history) {
      if (history.readers == kNone && history.writer != kNone) before_.push_back(history.writer);
      for (uint32_t r = history.readers; r != kNone; r = readers_[r].next) {
        if (readers_[r].step != s) before_.push_back(readers_[r].step);
      }
      return true;
    });
    history_.assign(first, count, {s, kNone});
  }

  void order_on_channel(uint32_t s, Dependencies& result) {
    const Step& step = plan_.steps[s];
    if (!step.is_transfer()) return;
    const uint64_t pipe = step.egress > 0
                              ? kEgresses | step.egress
                              : static_cast<uint64_t>(step.peer) << 9 | step.channel << 1 | (step.is_receive() ? 1 : 0);
    const auto [last, first_on_channel] = last_.try_emplace(pipe, s);
    if (first_on_channel) return;
    result.next_on_channel[last->second] = s;
    ++result.waits_for[s];
    last->second = s;
  }

  void collect(Dependencies& result) {
    const size_t steps = plan_.steps.size();
    result.first_successor.assign(steps + 1, 0);
    for (const uint32_t earlier : before_) ++result.first_successor[earlier + 1];
    for (size_t s = 0; s < steps; ++s) result.first_successor[s + 1] += result.first_successor[s];
    result.successors.resize(before_.size());
    std::vector<uint32_t> fill(result.first_successor.begin(), result.first_successor.end() - 1);
    for (uint32_t s = 0; s < steps; ++s) {
      result.waits_for[s] += first_before_[s + 1] - first_before_[s];
      for (uint32_t i = first_before_[s]; i < first_before_[s + 1]; ++i) result.successors[fill[before_[i]]++] = s;
    }
  }

  const Plan& plan_;
  Cells cells_;
  RunMap<History> history_;
  std::vector<Reader> readers_;
  std::vector<uint32_t> before_;        // all steps' predecessors, ascending within a step
  std::vector<uint32_t> first_before_;  // into before_, by step
  std::unordered_map<uint64_t, uint32_t> last_;
};

}  // namespace

Dependencies derive_dependencies(const Plan& plan) { return Derivation(plan).run(); }

}  // namespace ccom
