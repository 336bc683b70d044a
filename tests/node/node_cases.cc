// SPDX-License-Identifier: Apache-2.0
#include "tests/node/node_cases.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <thread>

namespace ccom {
namespace {

// Different per rank, block, element and call; every order of summation gives the same float. Its first byte is not
// zero, which is what a line holds there that was claimed too early.
float value(int rank, uint32_t block, size_t element, uint64_t call) {
  const size_t number = static_cast<size_t>(rank) * 7 + block * 5 + element * 3 + call;
  return static_cast<float>((1 + number % 8) * 65536 + number % 64 * 2 + 1);  // 24 bits for the sum of 32
}

float expected(const NodeTask& task, uint32_t block, size_t element, uint64_t call) {
  float total = 0;
  for (int rank = 0; rank < task.nranks; ++rank) {
    const auto& gives = task.blocks.gives[static_cast<size_t>(rank)];
    if (std::ranges::find(gives, block) != gives.end()) total += value(rank, block, element, call);
  }
  return total;
}

size_t length_of(const TaskCase& c, uint32_t block) {
  return c.block_elements.empty() ? c.count : c.block_elements[block];
}

// Where a rank's units lie, in elements: of its first memory, which holds the input and, in place, the output; of its
// second one, which holds the output otherwise.
struct Layout {
  std::vector<size_t> given, got;
  size_t first_elements = 0, second_elements = 0;
  bool in_place = false;
  // What offsets are counted from.
  size_t input_base = 0, output_base = 0;
};

// In any order, with gaps; the base is one of them, so that offsets have both signs.
std::vector<size_t> scatter(size_t units, size_t count, std::mt19937& random, size_t& elements, size_t& base) {
  std::vector<size_t> order(units), at(units);
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::shuffle(order, random);
  for (const size_t unit : order) {
    elements += random() % 4;
    at[unit] = elements;
    elements += count;
  }
  base = units == 0 ? 0 : at[random() % units];
  return at;
}

std::vector<size_t> in_row(size_t units, size_t count) {
  std::vector<size_t> at(units);
  for (size_t unit = 0; unit < units; ++unit) at[unit] = unit * count;
  return at;
}

Layout layout_of(const TaskCase& c, int rank, uint64_t number) {
  const auto self = static_cast<size_t>(rank);
  const std::vector<uint32_t>& gives = c.task.blocks.gives[self];
  const std::vector<uint32_t>& gets = c.task.blocks.gets[self];
  std::mt19937 random(static_cast<uint32_t>(number * 64 + self));
  Layout layout;
  const bool is_swap = c.task.collective == Collective::AllToAll;
  const auto shared = std::ranges::find_first_of(gives, gets);
  layout.in_place = c.in_place[self] && shared != gives.end() && !(is_swap && c.has_views);
  if (c.has_views && layout.in_place) {
    std::vector<uint32_t> blocks = gives;
    for (const uint32_t block : gets) {
      if (std::ranges::find(blocks, block) == blocks.end()) blocks.push_back(block);
    }
    const std::vector<size_t> at = scatter(blocks.size(), c.count, random, layout.first_elements, layout.input_base);
    layout.output_base = layout.input_base;
    const auto slot_of = [&](uint32_t block) {
      return at[static_cast<size_t>(std::ranges::find(blocks, block) - blocks.begin())];
    };
    for (const uint32_t block : gives) layout.given.push_back(slot_of(block));
    for (const uint32_t block : gets) layout.got.push_back(slot_of(block));
  } else if (c.has_views) {
    layout.given = scatter(gives.size(), c.count, random, layout.first_elements, layout.input_base);
    layout.got = scatter(gets.size(), c.count, random, layout.second_elements, layout.output_base);
  } else {
    layout.given = in_row(gives.size(), c.count);
    layout.got = in_row(gets.size(), c.count);
    layout.first_elements = gives.size() * c.count;
    layout.second_elements = gets.size() * c.count;
    if (!layout.in_place) return layout;
    // Input and output overlap so that the shared block has one address.
    const auto i = static_cast<size_t>(shared - gives.begin());
    const auto j = static_cast<size_t>(std::ranges::find(gets, *shared) - gets.begin());
    const bool is_input_first = is_swap || i >= j;
    const size_t between = is_swap ? 0 : std::max(i, j) - std::min(i, j);
    (is_input_first ? layout.output_base : layout.input_base) = between * c.count;
    for (size_t& at : layout.given) at += layout.input_base;
    for (size_t& at : layout.got) at += layout.output_base;
    layout.first_elements =
        std::max(layout.input_base + layout.first_elements, layout.output_base + layout.second_elements);
    layout.second_elements = 0;
  }
  return layout;
}

// A rank's memory for one call: from the arena or from the heap.
class RankMemory {
 public:
  RankMemory(Arena& arena, size_t elements, bool in_arena) : arena_(in_arena ? &arena : nullptr), elements_(elements) {
    if (arena_ != nullptr) {
      memory_ = static_cast<float*>(*arena_->allocate(elements * sizeof(float) + 64)) + 3;  // alignments differ too
    } else {
      heap_.resize(elements + 8);
      memory_ = heap_.data() + 5;
    }
    std::ranges::fill(get(), -1.0F);
  }
  ~RankMemory() {
    if (arena_ == nullptr) return;
    EXPECT_TRUE(arena_->free(memory_ - 3).is_ok());
  }
  RankMemory(const RankMemory&) = delete;
  RankMemory& operator=(const RankMemory&) = delete;
  std::span<float> get() { return {memory_, elements_}; }

 private:
  Arena* arena_;
  size_t elements_;
  std::vector<float> heap_;
  float* memory_;
};

NodeViews views_of(const TaskCase& c, uint64_t number) {
  NodeViews views;
  views.block_elements = c.block_elements;
  for (int rank = 0; rank < c.task.nranks; ++rank) {
    const Layout layout = layout_of(c, rank, number);
    const auto bytes = [](const std::vector<size_t>& units, size_t base) {
      std::vector<int64_t> offsets;
      for (const size_t at : units)
        offsets.push_back((static_cast<int64_t>(at) - static_cast<int64_t>(base)) * int64_t{sizeof(float)});
      return offsets;
    };
    views.given.push_back(bytes(layout.given, layout.input_base));
    views.got.push_back(bytes(layout.got, layout.output_base));
  }
  return views;
}

void expect_equal(std::span<const float> is, std::span<const float> wanted, const TaskCase& c, int rank,
                  uint64_t number) {
  const auto [at, want] = std::ranges::mismatch(is, wanted);
  if (at == is.end()) return;
  FAIL() << name_of(c.task.collective) << ", call " << number << ", rank " << rank << " of " << c.task.nranks
         << ", units of " << c.count << ": element " << at - is.begin() << " is " << *at << " instead of " << *want
         << (c.has_views ? ", with views" : "") << (c.in_place[static_cast<size_t>(rank)] ? ", in place" : "");
}

}  // namespace

NodeChoice choice_of(const Ways& ways, const NodeTask& task, size_t unit_bytes) {
  NodeChoice choice{.reads = ways.reads, .streams = ways.streams, .tile_bytes = ways.tile_bytes};
  const bool is_vector = (task.collective == Collective::AllReduce || task.collective == Collective::Reduce) &&
                         task.blocks.gives[0].size() == 1;
  const bool is_allreduce = task.collective == Collective::AllReduce;
  if (!is_vector) {
    choice.staged = choice.readable = choice.mapped = {NodeScheme::Direct, {}};
  } else if (unit_bytes <= ways.one_shot_bytes && !ways.groups.empty() && is_allreduce) {
    choice.asks = false;
    choice.staged = {NodeScheme::GatherRelease, ways.groups};
  } else if (unit_bytes <= ways.one_shot_bytes) {
    choice.staged = choice.readable = {NodeScheme::OneShot, {}, true};
    choice.mapped = {NodeScheme::TwoShot, {}, true};
  } else {
    const bool has_domains = is_allreduce && !ways.domains.empty();
    choice.staged = has_domains ? NodeShape{NodeScheme::Domains, ways.domains} : NodeShape{NodeScheme::TwoShot, {}};
    choice.mapped = choice.readable = choice.staged;
    if (ways.pulls && is_allreduce) choice.readable = {NodeScheme::Pull, {}};
  }
  return choice;
}

void run_case(NodeCrew& crew, int rank, const TaskCase& c, uint64_t number) {
  const auto self = static_cast<size_t>(rank);
  const Layout layout = layout_of(c, rank, number);
  RankMemory first(crew.arena(), layout.first_elements, c.input_in_arena[self]);
  RankMemory second(crew.arena(), layout.second_elements, c.output_in_arena[self]);
  const std::span<float> output = layout.in_place ? first.get() : second.get();
  for (size_t unit = 0; unit < layout.given.size(); ++unit) {
    const uint32_t block = c.task.blocks.gives[self][unit];
    const std::span<float> to = first.get().subspan(layout.given[unit], length_of(c, block));
    for (size_t i = 0; i < to.size(); ++i) to[i] = value(rank, block, i, number);
  }
  std::vector<float> first_wanted(first.get().begin(), first.get().end());
  std::vector<float> second_wanted(second.get().begin(), second.get().end());
  std::vector<float>& wanted = layout.in_place ? first_wanted : second_wanted;
  for (size_t unit = 0; unit < layout.got.size(); ++unit) {
    const uint32_t block = c.task.blocks.gets[self][unit];
    for (size_t i = 0; i < length_of(c, block); ++i) wanted[layout.got[unit] + i] = expected(c.task, block, i, number);
  }
  const NodeViews views = c.has_views ? views_of(c, number) : NodeViews();
  NodeChoice choice = choice_of(c.ways, c.task, c.count * sizeof(float));
  // How it passes lines is each rank's own affair.
  choice.claims_lines = (number + self) % 2 == 0;
  choice.streams_shared = number % 3 == 0;
  NodeCall call;
  call.task = &crew.prepared(rank, c.task, choice);
  call.views = c.has_views ? &views : nullptr;
  call.input = reinterpret_cast<const std::byte*>(first.get().data() + layout.input_base);
  call.output = reinterpret_cast<std::byte*>(output.data() + layout.output_base);
  call.count = c.count;
  call.in_place = layout.in_place;
  const Status status = crew.group(rank).run(call, words_of(call, number), std::chrono::seconds(60));
  ASSERT_TRUE(status.is_ok()) << status.message();
  expect_equal(first.get(), first_wanted, c, rank, number);
  expect_equal(second.get(), second_wanted, c, rank, number);
}

void run_cases(NodeCrew& crew, const std::vector<TaskCase>& cases) {
  crew.run([&](int rank, ShmCollectives&) {
    std::mt19937 random(static_cast<uint32_t>(rank));
    for (size_t i = 0; i < cases.size(); ++i) {
      if (random() % 16 == 0) std::this_thread::sleep_for(std::chrono::microseconds(random() % 300));
      run_case(crew, rank, cases[i], i + 1);
      if (testing::Test::HasFatalFailure()) return;
    }
  });
}

}  // namespace ccom
