// SPDX-License-Identifier: Apache-2.0
//
// The ways of a task: calls agree on one without messages, and ranks that do not notice.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "node/call_choices.h"
#include "plan/print.h"
#include "tests/node/host_ways.h"
#include "tests/node/node_crew.h"

namespace ccom {
namespace {

constexpr size_t kMostBytes = size_t{1} << 18;

// Memory of a rank, mapped by others or not.
struct Buffers {
  Buffers(NodeCrew& crew, bool mapped) : arena(crew.arena()) {
    if (mapped) {
      memory = static_cast<std::byte*>(*arena.allocate(2 * kMostBytes));
    } else {
      own.resize(2 * kMostBytes);
      memory = own.data();
    }
  }
  ~Buffers() {
    if (own.empty()) (void)arena.free(memory);
  }
  std::byte* input() const { return memory; }
  std::byte* output() const { return memory + kMostBytes; }

  Arena& arena;
  std::vector<std::byte> own;
  std::byte* memory = nullptr;
};

// By which they are told apart in explanations and in files.
TEST(Ways, HaveTextsOfTheirOwn) {
  for (const char* machine : {"host:2", "host:3", "host:4", "host:16", "host:64"}) {
    for (const Collective collective : {Collective::AllReduce, Collective::Reduce, Collective::ReduceScatter,
                                        Collective::AllGather, Collective::Broadcast, Collective::AllToAll}) {
      for (const size_t bytes : {size_t{1} << 15, size_t{1} << 20, size_t{1} << 28}) {
        std::set<std::string> texts;
        for (const NodeChoice& way : ways_of(machine, collective, bytes))
          EXPECT_TRUE(texts.insert(to_text(way)).second) << machine << ", " << bytes << ": " << to_text(way);
      }
    }
  }
}

// By what has been measured when the ranks met; what was not leaves the plan as it is.
TEST(Ways, BeginWithTheOneThatPassesLinesFastest) {
  const auto first = [](const LineCosts& lines) {
    return ways_of("host:2", Collective::AllReduce, size_t{1} << 18, lines).front();
  };
  const NodeChoice plain = first({});
  EXPECT_FALSE(plain.claims_lines || plain.streams_shared);
  EXPECT_EQ(first({.plain_ns = 0.13, .claimed_ns = 0.12, .streamed_ns = 0.2}), plain) << "hardly better";
  const NodeChoice claims = first({.plain_ns = 0.13, .claimed_ns = 0.06, .streamed_ns = 0.1});
  EXPECT_TRUE(claims.claims_lines && !claims.streams_shared);
  const NodeChoice streams = first({.plain_ns = 0.43, .claimed_ns = 0.17, .streamed_ns = 0.1});
  EXPECT_TRUE(streams.streams_shared && !streams.claims_lines);
  for (NodeChoice other : {claims, streams}) {
    other.claims_lines = other.streams_shared = false;
    EXPECT_EQ(other, plain);
  }
}

// Calls on mapped and other buffers, in turn and in rows, by ranks that are in place and that are not.
TEST(Ways, AreChosenAlikeByAllRanks) {
  constexpr int kRanks = 3, kCalls = 2000;
  constexpr size_t kCount = 5000;
  NodeCrew crew({.ranks = kRanks, .within = Within::Arenas, .bank_bytes = size_t{16} << 10, .small_bytes = 0});
  const NodeTask task = node_task(Collective::AllReduce, kRanks, -1);
  const std::vector<NodeChoice> ways = ways_of("host:3", Collective::AllReduce, kCount * sizeof(float));
  ASSERT_GT(ways.size(), 2U);
  std::vector<std::vector<size_t>> taken(kRanks);
  std::vector<std::vector<std::pair<uint64_t, double>>> found(kRanks);  // by buffers: medians
  crew.run([&](int rank, ShmCollectives& group) {
    PreparedTask prepared(task, ways, rank);
    const Buffers mapped(crew, true), mapped_too(crew, true), own(crew, false);
    BoundCall kept[2];  // by whether the call is in place
    for (int i = 0; i < kCalls; ++i) {
      const Buffers& used = (i / 100) % 3 == 2 || i % 7 == 0 ? own : i % 11 < 5 ? mapped : mapped_too;
      const bool in_place = (i + rank) % 2 == 0;
      auto* const input = reinterpret_cast<float*>(in_place ? used.output() : used.input());
      for (size_t k = 0; k < kCount; ++k) input[k] = static_cast<float>(rank + i % 5);
      const NodeCall call{.task = &prepared,
                          .bound = &kept[in_place ? 1 : 0],
                          .input = reinterpret_cast<std::byte*>(input),
                          .output = used.output(),
                          .count = kCount,
                          .in_place = in_place};
      const Status status = group.run(call, words_of(call, static_cast<uint64_t>(i) + 1), std::chrono::seconds(30));
      ASSERT_TRUE(status.is_ok()) << status.message();
      const auto* const output = reinterpret_cast<const float*>(used.output());
      ASSERT_EQ(output[0], static_cast<float>(3 + kRanks * (i % 5))) << "call " << i;
      ASSERT_EQ(output[kCount - 1], output[0]);
      const auto way = std::ranges::find(ways, prepared.choice());
      taken[static_cast<size_t>(rank)].push_back(static_cast<size_t>(way - ways.begin()));
    }
    for (const CallChoices::Found& calls : group.choices().found()) {
      EXPECT_EQ(calls.ways, ways);
      for (size_t way = 0; way < ways.size(); ++way)
        found[static_cast<size_t>(rank)].emplace_back(calls.buffers, calls.choice.median_ns(way));
    }
  });
  EXPECT_EQ(taken[0], taken[1]);
  EXPECT_EQ(taken[0], taken[2]);
  EXPECT_EQ(found[0], found[1]);
  EXPECT_EQ(found[0], found[2]);
  EXPECT_GE(found[0].size(), 2 * ways.size()) << "ordinary buffers, and mapped ones";
  EXPECT_EQ(std::ranges::count(found[0], uint64_t{0}, &std::pair<uint64_t, double>::first), std::ssize(ways));
  EXPECT_GT(std::set(taken[0].begin(), taken[0].end()).size(), 1U) << "no other way was tried";
}

// Two programs may ask for the same work, as one of a long call's tiles and as a call, and have other ways to do it.
TEST(CallChoices, StayWithinTheWaysOfTheTask) {
  const NodeTask task = node_task(Collective::AllReduce, 2, -1);
  CallChoices choices;
  for (int i = 0; i < 2000; ++i) {
    for (const size_t ways : {size_t{9}, size_t{2}, size_t{3}}) {
      const size_t way = choices.begin({.words = 1, .bytes = 1 << 20, .given = 1}, task, std::vector<NodeChoice>(ways));
      ASSERT_LT(way, ways) << "call " << i;
      choices.hear({.end_ns = way == 0 ? 100 : 95});
      choices.end(0, 95);
    }
  }
}

TEST(Ways, ThatRanksChooseDifferentlyAreAMismatch) {
  NodeCrew crew({.ranks = 2, .bank_bytes = size_t{16} << 10, .small_bytes = 0});
  const NodeTask task = node_task(Collective::AllReduce, 2, -1);
  const std::vector<NodeChoice> ways = ways_of("host:2", Collective::AllReduce, kMostBytes);
  Code codes[2];
  crew.run([&](int rank, ShmCollectives& group) {
    PreparedTask prepared(task, rank == 0 ? ways : std::vector{ways[0]}, rank);  // rank 1 never tries another
    const Buffers used(crew, false);
    Status status;
    for (uint64_t i = 1; i < 2000 && status.is_ok(); ++i) {
      const NodeCall call{.task = &prepared, .input = used.input(), .output = used.output(), .count = 5000};
      status = group.run(call, words_of(call, i), std::chrono::seconds(30));
    }
    codes[rank] = status.code();
  });
  EXPECT_EQ(codes[0], Code::Mismatch);
  EXPECT_EQ(codes[1], Code::Mismatch);
}

// A list of ways that is another one on a rank, whatever the reason: before anybody computes anything.
TEST(Ways, OfOtherShapesOnARankAreAMismatchAtItsFirstCall) {
  const NodeTask task = node_task(Collective::AllReduce, 2, -1);
  const std::vector<NodeChoice> ways = ways_of("host:2", Collective::AllReduce, kMostBytes);
  const auto is_as_long = [](const NodeChoice& a, const NodeChoice& b) {
    return a.staged == b.staged && a.readable == b.readable && a.mapped == b.mapped && a.tile_bytes == b.tile_bytes;
  };
  size_t compared = 0;
  for (const NodeChoice& other : ways) {
    if (is_as_long(other, ways[0])) continue;
    ++compared;
    NodeCrew crew({.ranks = 2, .small_bytes = 0});
    Status said[2];
    crew.run([&](int rank, ShmCollectives& group) {
      PreparedTask prepared(task, {rank == 0 ? ways[0] : other}, rank);
      const Buffers used(crew, false);
      const NodeCall call{.task = &prepared, .input = used.input(), .output = used.output(), .count = 30000};
      said[rank] = group.run(call, words_of(call, 1), std::chrono::seconds(30));
    });
    for (const Status& status : said) {
      EXPECT_EQ(status.code(), Code::Mismatch) << name_of(other.staged.scheme);
      EXPECT_NE(status.message().find("run in different ways"), std::string::npos) << status.message();
    }
  }
  EXPECT_GE(compared, 3U);
}

// Each of these decides which bytes ranks exchange, and where.
TEST(Ways, ThatDifferInOneThingAreTold) {
  const NodeTask task = node_task(Collective::AllReduce, 2, -1);
  const NodeChoice way = ways_of("host:2", Collective::AllReduce, kMostBytes)[0];
  const auto word_with = [&](auto change) {
    NodeChoice other = way;
    change(other);
    return PreparedTask(task, {other}, 0).way_word();
  };
  const auto turned = [](NodeShape& shape) { shape.whole = !shape.whole; };
  const uint32_t words[] = {
      word_with([](NodeChoice&) {}),
      word_with([](NodeChoice& choice) { choice.asks = !choice.asks; }),
      word_with([](NodeChoice& choice) { choice.reads = !choice.reads; }),
      word_with([](NodeChoice& choice) { choice.tile_bytes += 4096; }),
      word_with([&](NodeChoice& choice) { turned(choice.staged); }),
      word_with([&](NodeChoice& choice) { turned(choice.readable); }),
      word_with([&](NodeChoice& choice) { turned(choice.mapped); }),
  };
  EXPECT_EQ(std::set(std::begin(words), std::end(words)).size(), std::size(words));
}

// How a rank passes lines is its own affair.
TEST(Ways, MayPassLinesInOtherMannersOnEachRank) {
  constexpr int kRanks = 3, kCalls = 200;
  constexpr size_t kCount = 6000;
  constexpr LineCosts kLines[kRanks] = {{}, {0.13, 0.06, 0.1}, {0.43, 0.17, 0.1}};
  const NodeTask task = node_task(Collective::AllReduce, kRanks, -1);
  NodeCrew crew({.ranks = kRanks, .small_bytes = 0});
  std::vector<std::vector<NodeChoice>> ways;
  for (const LineCosts& lines : kLines) ways.push_back(ways_of("host:3", Collective::AllReduce, kCount * 4, lines));
  EXPECT_NE(ways[0], ways[1]);
  EXPECT_NE(ways[0], ways[2]);
  crew.run([&](int rank, ShmCollectives& group) {
    PreparedTask prepared(task, ways[static_cast<size_t>(rank)], rank);
    const Buffers used(crew, false);
    auto* const input = reinterpret_cast<float*>(used.input());
    const auto* const output = reinterpret_cast<const float*>(used.output());
    for (int i = 0; i < kCalls; ++i) {
      for (size_t k = 0; k < kCount; ++k) input[k] = static_cast<float>(65537 * (rank + 1) + 2 * (i % 5));
      const NodeCall call{.task = &prepared, .input = used.input(), .output = used.output(), .count = kCount};
      const Status status = group.run(call, words_of(call, static_cast<uint64_t>(i) + 1), std::chrono::seconds(30));
      ASSERT_TRUE(status.is_ok()) << status.message();
      ASSERT_EQ(std::count(output, output + kCount, static_cast<float>(65537 * 6 + 6 * (i % 5))), ptrdiff_t{kCount})
          << i;
    }
  });
}

}  // namespace
}  // namespace ccom
