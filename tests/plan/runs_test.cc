// SPDX-License-Identifier: Apache-2.0
//
// Builder and derivation work on runs of blocks. Shown here: they do exactly what a block-by-block reference does, on
// every family of algorithms, on random plans and on random sequences of a brick's calls; and what they cost follows
// steps, not blocks.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <numeric>
#include <random>
#include <tuple>

#include "algorithms/builder.h"
#include "plan/dependencies.h"
#include "plan/print.h"
#include "tests/plan/families.h"

namespace ccom {
namespace {

// The definition, cell by cell: for each step the steps that must be done before, and the one that must have started.
struct Reference {
  std::vector<std::vector<uint32_t>> before;
  std::vector<uint32_t> next_on_channel;
};

Reference derive_by_cells(const Plan& plan) {
  struct History {
    uint32_t writer = Dependencies::kNone;
    std::vector<uint32_t> readers;
  };
  const Cells cells(plan);
  std::vector<History> history(cells.count());
  std::map<std::tuple<Rank, uint8_t, bool>, uint32_t> last;
  Reference reference{std::vector<std::vector<uint32_t>>(plan.steps.size()),
                      std::vector<uint32_t>(plan.steps.size(), Dependencies::kNone)};
  for (uint32_t s = 0; s < plan.steps.size(); ++s) {
    const Step& step = plan.steps[s];
    auto& before = reference.before[s];
    for (uint32_t i = 0; step.reads_source() && i < step.source_count(); ++i) {
      History& cell = history[cells.of(step.source_buffer, step.source + i)];
      if (cell.writer != Dependencies::kNone) before.push_back(cell.writer);
      cell.readers.push_back(s);
    }
    for (uint32_t i = 0; step.writes_target() && i < step.count; ++i) {
      History& cell = history[cells.of(step.target_buffer, step.target + i)];
      if (cell.readers.empty() && cell.writer != Dependencies::kNone) before.push_back(cell.writer);
      std::ranges::copy_if(cell.readers, std::back_inserter(before), [s](uint32_t r) { return r != s; });
      cell = {s, {}};
    }
    std::ranges::sort(before);
    before.erase(std::ranges::unique(before).begin(), before.end());
    if (!step.is_transfer()) continue;
    const auto pipe = step.egress > 0 ? std::tuple(Rank{-1}, step.egress, false)
                                      : std::tuple(step.peer, step.channel, step.is_receive());
    const auto [entry, is_first] = last.try_emplace(pipe, s);
    if (!is_first) reference.next_on_channel[std::exchange(entry->second, s)] = s;
  }
  return reference;
}

void expect_derived_as_by_cells(const Plan& plan, const std::string& what) {
  const Reference expected = derive_by_cells(plan);
  const Dependencies derived = derive_dependencies(plan);
  ASSERT_EQ(derived.next_on_channel, expected.next_on_channel) << what;
  std::vector<uint32_t> waits_for(plan.steps.size());
  std::vector<std::vector<uint32_t>> successors(plan.steps.size());
  for (uint32_t s = 0; s < plan.steps.size(); ++s) {
    waits_for[s] += static_cast<uint32_t>(expected.before[s].size());
    for (const uint32_t earlier : expected.before[s]) successors[earlier].push_back(s);
    if (expected.next_on_channel[s] != Dependencies::kNone) ++waits_for[expected.next_on_channel[s]];
  }
  ASSERT_EQ(derived.waits_for, waits_for) << what;
  for (uint32_t s = 0; s < plan.steps.size(); ++s) {
    const auto span = derived.successors_of(s);
    ASSERT_EQ((std::vector<uint32_t>{span.begin(), span.end()}), successors[s]) << what << "\nafter step " << s;
  }
}

TEST(Dependencies, OfEveryFamilyAreThoseOfACellByCellDerivation) {
  for (const Family& family : families()) {
    for (const int n : {1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 31, 36}) {
      if (!family.exists(n)) continue;
      for (const bool in_place : {false, true}) {
        for (const Plan& plan : family.plans(n, in_place)) expect_derived_as_by_cells(plan, family.name);
      }
    }
  }
}

// Steps of any kind over random runs of a plan of random proportions, aliased in every way that a collective allows.
Plan random_plan(std::mt19937_64& random) {
  const auto below = [&random](uint64_t bound) { return static_cast<uint32_t>(random() % bound); };
  const Collective collectives[] = {Collective::AllReduce, Collective::AllGather, Collective::ReduceScatter};
  Plan plan;
  plan.collective = collectives[below(3)];
  plan.nranks = 3;
  plan.rank = static_cast<Rank>(below(3));
  plan.in_place = below(2) == 0;
  plan.blocks_per_unit = 1 + below(9);
  plan.input_units = plan.collective == Collective::ReduceScatter ? 3 : 1;
  plan.output_units = plan.collective == Collective::AllGather ? 3 : 1;
  plan.scratch_slots = 1 + below(30);
  const auto run = [&](Buffer buffer, uint32_t most, uint32_t& first) {
    const uint32_t size = buffer == Buffer::Input    ? plan.input_blocks()
                          : buffer == Buffer::Output ? plan.output_blocks()
                                                     : plan.scratch_slots;
    const uint32_t count = 1 + below(std::min(size, most));
    first = below(size - count + 1);
    return count;
  };
  for (uint32_t s = below(60); s > 0; --s) {
    Step step{.kind = static_cast<StepKind>(below(4)),
              .source_buffer = static_cast<Buffer>(below(3)),
              .target_buffer = static_cast<Buffer>(1 + below(2)),
              .channel = static_cast<uint8_t>(below(2))};
    step.peer = (plan.rank + 1 + static_cast<Rank>(below(2))) % 3;
    step.count = run(step.source_buffer, UINT32_MAX, step.source);
    step.count = run(step.target_buffer, step.count, step.target);
    if (step.source_buffer == Buffer::Scratch && step.source + 2 * step.count <= plan.scratch_slots && below(2) == 0) {
      step.kind = StepKind::Reduce;
      step.inputs = 2;
    }
    plan.steps.push_back(step);
  }
  return plan;
}

TEST(Dependencies, OfRandomPlansAreThoseOfACellByCellDerivation) {
  for (uint64_t seed = 1; seed <= 3000; ++seed) {
    std::mt19937_64 random(seed);
    const Plan plan = random_plan(random);
    expect_derived_as_by_cells(plan, "seed " + std::to_string(seed));
    if (HasFatalFailure()) return;
  }
}

// The builder's rules, block by block.
class PlainBuilder {
 public:
  PlainBuilder(Plan plan, std::vector<uint32_t> order) : plan_(std::move(plan)), order_(std::move(order)) {
    homes_.resize(std::max(plan_.input_blocks(), plan_.output_blocks()));
    const bool gathers = plan_.output_units > plan_.input_units;
    const uint32_t own = gathers ? static_cast<uint32_t>(plan_.rank) * plan_.blocks_per_unit : 0;
    for (uint32_t b = 0; b < plan_.input_blocks(); ++b) homes_[own + b] = {Buffer::Input, b};
  }

  void send(Rank peer, Range range, uint8_t channel) {
    for (const auto& [block, count] : runs(range)) {
      const Location own = unify(block, count);
      plan_.steps.push_back({.kind = StepKind::Send,
                             .source_buffer = own.buffer,
                             .channel = channel,
                             .peer = peer,
                             .source = own.index,
                             .count = count,
                             .block = block});
    }
  }
  void receive(Rank peer, Range range, uint8_t channel) {
    for (const auto& [block, count] : runs(range)) {
      const Location target = target_of(block, false);
      plan_.steps.push_back({.kind = StepKind::Receive,
                             .target_buffer = target.buffer,
                             .channel = channel,
                             .peer = peer,
                             .target = target.index,
                             .count = count,
                             .block = block});
      for (uint32_t i = 0; i < count; ++i) homes_[block + i] = target.at(i);
    }
  }
  void receive_reduce(Rank peer, Range range, uint8_t channel) {
    for (const auto& [block, count] : runs(range)) {
      const Location own = unify(block, count);
      const Location target = target_of(block, false);
      plan_.steps.push_back({.kind = StepKind::ReceiveReduce,
                             .source_buffer = own.buffer,
                             .target_buffer = target.buffer,
                             .channel = channel,
                             .peer = peer,
                             .source = own.index,
                             .target = target.index,
                             .count = count,
                             .block = block});
      for (uint32_t i = 0; i < count; ++i) homes_[block + i] = target.at(i);
    }
  }
  void settle(Range range) {
    for (const auto& [block, count] : runs(range)) {
      for (uint32_t i = 0; i < count; ++i) {
        const Location home = homes_[block + i];
        const Location target = target_of(block + i, true);
        homes_[block + i] = target;
        if (home == target) continue;
        Step* last = plan_.steps.empty() || i == 0 ? nullptr : &plan_.steps.back();
        const bool continues = last != nullptr && last->kind == StepKind::Copy && last->source_buffer == home.buffer &&
                               last->source + last->count == home.index && last->target + last->count == target.index;
        continues ? static_cast<void>(++last->count) : copy(home, target, block + i);
      }
    }
  }
  Plan finish() { return plan_; }

 private:
  std::vector<std::pair<uint32_t, uint32_t>> runs(Range range) const {
    std::vector<std::pair<uint32_t, uint32_t>> found;
    for (uint32_t p = range.first; p < range.first + range.count; ++p) {
      const uint32_t block = order_.empty() ? p : order_[p];
      const bool starts_unit = plan_.blocks_per_unit > 1 && block % plan_.blocks_per_unit == 0;
      const bool continues = !found.empty() && found.back().first + found.back().second == block && !starts_unit;
      continues ? static_cast<void>(++found.back().second) : found.push_back({block, 1});
    }
    return found;
  }
  void copy(Location from, Location to, uint32_t block, uint32_t count = 1) {
    plan_.steps.push_back({.kind = StepKind::Copy,
                           .source_buffer = from.buffer,
                           .target_buffer = to.buffer,
                           .source = from.index,
                           .target = to.index,
                           .count = count,
                           .block = block});
  }
  Location unify(uint32_t block, uint32_t count) {
    bool together = true;
    for (uint32_t i = 1; i < count; ++i) together &= homes_[block + i] == homes_[block].at(i);
    for (uint32_t i = 0; i < count && !together;) {
      const Location home = homes_[block + i];
      const Location target = target_of(block + i, false);
      uint32_t length = 1;
      while (i + length < count && homes_[block + i + length] == home.at(length)) ++length;
      if (home != target) copy(home, target, block + i, length);
      for (uint32_t k = 0; k < length; ++k) homes_[block + i + k] = target.at(k);
      i += length;
    }
    return homes_[block];
  }
  Location target_of(uint32_t block, bool completes) {
    if (plan_.output_units >= plan_.input_units) return {Buffer::Output, block};
    if (completes) return {Buffer::Output, block - static_cast<uint32_t>(plan_.rank) * plan_.blocks_per_unit};
    if (partial_ == UINT32_MAX) {
      partial_ = plan_.scratch_slots;
      plan_.scratch_slots += static_cast<uint32_t>(homes_.size());
    }
    return {Buffer::Scratch, partial_ + block};
  }

  Plan plan_;
  std::vector<uint32_t> order_;
  std::vector<Location> homes_;
  uint32_t partial_ = UINT32_MAX;
};

TEST(Builder, WritesWhatABlockByBlockBuilderWrites) {
  for (uint64_t seed = 1; seed <= 3000; ++seed) {
    std::mt19937_64 random(seed);
    const auto below = [&random](uint64_t bound) { return static_cast<uint32_t>(random() % bound); };
    Plan empty;
    empty.nranks = 4;
    empty.rank = static_cast<Rank>(below(4));
    empty.blocks_per_unit = 1 + below(12);
    const bool scatters = below(2) == 0;
    empty.collective = scatters ? Collective::ReduceScatter : Collective::AllReduce;
    empty.input_units = scatters ? 4 : 1;
    empty.output_units = 1;
    std::vector<uint32_t> order;
    const uint32_t blocks = empty.input_blocks();
    if (below(2) == 0) {  // a permutation that keeps some runs
      order.resize(blocks);
      std::iota(order.begin(), order.end(), 0);
      for (uint32_t i = below(4); i > 0; --i) {
        const uint32_t end = 1 + below(blocks);
        std::rotate(order.begin(), order.begin() + below(end), order.begin() + end);
      }
    }
    Builder builder(empty, order);
    PlainBuilder plain(empty, order);
    for (uint32_t i = below(40); i > 0; --i) {
      Range range{below(blocks), 1};
      range.count += below(blocks - range.first);
      const Rank peer = (empty.rank + 1 + static_cast<Rank>(below(3))) % 4;
      const auto channel = static_cast<uint8_t>(below(3));
      switch (below(4)) {
        case 0: builder.send(peer, range, channel), plain.send(peer, range, channel); break;
        case 1: builder.receive(peer, range, channel), plain.receive(peer, range, channel); break;
        case 2: builder.receive_reduce(peer, range, false, channel), plain.receive_reduce(peer, range, channel); break;
        default:
          if (scatters) break;
          builder.settle(range), plain.settle(range);
      }
    }
    ASSERT_EQ(to_text(std::move(builder).finish()), to_text(plain.finish())) << "seed " << seed;
  }
}

// The vector of 640 hosts of 16 ranks has 40,960 blocks: a plan takes tens of microseconds. The bound is loose (other
// work shares the machine); block by block it took 3 ms.
TEST(Scale, APlanForTenThousandRanksIsBuiltAndDerivedAtOnce) {
  const Staged shape = host_shape(640, 16, Pattern::Circulant, 4);
  double best_us = 1e9;
  for (int attempt = 0; attempt < 50; ++attempt) {
    const auto begin = std::chrono::steady_clock::now();
    const Plan plan = staged_plan({Collective::AllReduce, 5000, 10240, -1, false}, shape, "hierarchical");
    const Dependencies dependencies = derive_dependencies(plan);
    const auto end = std::chrono::steady_clock::now();
    ASSERT_EQ(plan.blocks_per_unit, 40960U);
    ASSERT_LT(plan.steps.size(), 400U);
    ASSERT_EQ(dependencies.waits_for.size(), plan.steps.size());
    best_us = std::min(best_us, std::chrono::duration<double, std::micro>(end - begin).count());
  }
  RecordProperty("best_us", static_cast<int>(best_us));
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  EXPECT_LT(best_us, 500);
#endif
}

}  // namespace
}  // namespace ccom
