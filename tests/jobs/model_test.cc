// SPDX-License-Identifier: Apache-2.0
//
// What ccom-top shows, without a terminal: every line fits, at every size, after any keys.
#include "tools/top/model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace ccom {
namespace {

using ::testing::HasSubstr;
using Key = TopModel::Key;
using View = TopModel::View;

HostSeen host_with(int communicators, int ranks, uint64_t calls) {
  HostSeen host;
  host.at_ns = static_cast<int64_t>(calls) * 1'000'000'000;
  for (int c = 0; c < communicators; ++c) {
    CommunicatorSeen communicator;
    communicator.number = static_cast<uint64_t>(c + 1) << 40;
    communicator.name = "name" + std::to_string(c);
    communicator.ranks = ranks;
    communicator.hosts = 1;
    communicator.age = 5;
    for (Rank rank = 0; rank < ranks; ++rank) {
      RankSeen seen;
      seen.activity.rank = rank;
      seen.activity.state = RankActivity::State::InCall;
      seen.activity.call.number = calls;
      seen.activity.site = "train.py:88 (step)";
      seen.totals.calls = {{Collective::AllReduce, 0, calls * static_cast<uint64_t>(rank + 1), 8, 0.1, true, 0}};
      communicator.seen.push_back(seen);
    }
    host.communicators.push_back(std::move(communicator));
  }
  host.links.push_back({1, {0}, "10.0.0.1", "10.0.0.2", 4, 100, 100, 0, 1e-4, 0.5});
  return host;
}

std::string text_of(const TopModel& model, size_t width = 80, size_t height = 24) {
  std::string text;
  for (const TopLine& line : model.lines(width, height)) text += line.text + "\n";
  return text;
}

TEST(TopModel, ShowsWhatIsThere) {
  TopModel model(1);
  EXPECT_THAT(text_of(model), HasSubstr("no communicators"));
  model.add(host_with(2, 3, 10));
  model.add(host_with(2, 3, 20));
  EXPECT_THAT(text_of(model), HasSubstr("name0"));
  EXPECT_THAT(text_of(model), HasSubstr("allreduce #20 at"));
  EXPECT_THAT(text_of(model, 0, 0), HasSubstr("allreduce #20 at train.py:88 (step)"));
}

TEST(TopModel, OpensACommunicatorAndARanksHistory) {
  TopModel model(1);
  for (uint64_t at = 1; at < 5; ++at) model.add(host_with(2, 3, 10 * at));
  for (const Key key : {Key::Down, Key::Enter, Key::Down, Key::Enter}) model.press(key);
  EXPECT_EQ(model.view(), View::History);
  EXPECT_THAT(text_of(model), HasSubstr("(name1), rank 1"));
  model.press(Key::Back);
  EXPECT_EQ(model.view(), View::Ranks);
}

TEST(TopModel, SortsRanksByCalls) {
  TopModel model(1);
  model.add(host_with(1, 3, 10));
  model.add(host_with(1, 3, 20));
  const auto first_rank = [&] {
    const std::string text = text_of(model);
    return text[text.find("DOES\n") + 5 + 4];
  };
  EXPECT_EQ(first_rank(), '0');
  model.press(Key::Sort);
  EXPECT_EQ(first_rank(), '2');
}

TEST(TopModel, AddsNothingWhilePaused) {
  TopModel model(1);
  model.add(host_with(1, 1, 10));
  model.press(Key::Pause);
  model.add(host_with(1, 1, 20));
  EXPECT_THAT(text_of(model), HasSubstr("#10"));
  EXPECT_THAT(text_of(model), HasSubstr("[paused]"));
}

TEST(TopModel, GoesBackWhenTheCommunicatorHasEnded) {
  TopModel model(1);
  model.add(host_with(1, 2, 10));
  model.press(Key::Enter);
  model.press(Key::Enter);
  model.add(HostSeen{});
  EXPECT_EQ(model.view(), View::Communicators);
  EXPECT_THAT(text_of(model), HasSubstr("no communicators"));
}

TEST(TopModel, FitsEverySizeAfterAnyKeys) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  TopModel model(1);
  for (int step = 0; step < 2000; ++step) {
    if (random() % 3 == 0)
      model.add(host_with(static_cast<int>(random() % 12), static_cast<int>(1 + random() % 40), random() % 1000));
    model.press(static_cast<Key>(random() % 8));
    const size_t width = 1 + random() % 120, height = 1 + random() % 50;
    const std::vector<TopLine> lines = model.lines(width, height);
    ASSERT_LE(lines.size(), height);
    for (const TopLine& line : lines) ASSERT_LE(line.text.size(), width);
  }
}

}  // namespace
}  // namespace ccom
