// SPDX-License-Identifier: Apache-2.0
//
// Parts of a communicator across hosts: their control trees are streams in the connections of the whole, or of other
// parts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "tests/harness/resources.h"
#include "tests/liveness/cluster.h"

namespace ccom {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Status stop() { return {Code::Aborted, "stop"}; }

// Whether the parts' streams carry something.
bool carries(test::Cluster& part, Rank from) {
  (void)part[from].report(stop());
  return part.all_fail(5000);
}

class Parts : public testing::TestWithParam<bool> {};

TEST_P(Parts, NeedNoDescriptorWhereTheWholeHasConnections) {
  test::ConnectedCluster whole({2, 2}, 3000, GetParam());
  const int descriptors = open_descriptors();
  std::vector<std::unique_ptr<test::ConnectedCluster>> parts;
  for (int i = 0; i < 20; ++i) {
    parts.push_back(std::make_unique<test::ConnectedCluster>(whole, std::vector<Rank>{0, 1, 2, 3}));
    for (const auto& address : parts.back()->addresses()) EXPECT_EQ(address.control, "") << "nobody listens";
  }
  EXPECT_EQ(open_descriptors(), descriptors);
  for (size_t i = 0; i < parts.size(); ++i) EXPECT_TRUE(carries(*parts[i], static_cast<Rank>(i % 4))) << i;
  EXPECT_FALSE(whole[0].failed() || whole[3].failed()) << "an error of a part is its own";
}

// Hosts 1 and 2 are no neighbours in the trees of the whole.
TEST_P(Parts, MakeAConnectionThatIsMissingForThoseThatFollow) {
  test::ConnectedCluster whole({1, 1, 1}, 3000, GetParam());
  const int descriptors = open_descriptors();
  test::Cluster first(whole, {1, 2});
  EXPECT_NE(first.addresses()[0].control, "");
  EXPECT_EQ(first.addresses()[1].control, "");
  ASSERT_TRUE(first.connect().is_ok());
  EXPECT_EQ(open_descriptors(), descriptors + 2);
  test::Cluster second(whole, {1, 2}), third(whole, {0, 1, 2}), of_a_part(third, {1, 2});
  for (test::Cluster* part : {&second, &third, &of_a_part}) ASSERT_TRUE(part->connect().is_ok());
  EXPECT_EQ(open_descriptors(), descriptors + 2);
  for (test::Cluster* part : {&of_a_part, &first, &third, &second}) EXPECT_TRUE(carries(*part, 1));
}

TEST_P(Parts, OutliveTheWholeAndOneAnother) {
  auto whole = std::make_unique<test::ConnectedCluster>(std::vector<int>{2, 2}, 3000, GetParam());
  auto first = std::make_unique<test::Cluster>(*whole, std::vector<Rank>{0, 2});
  test::Cluster second(*whole, {0, 2, 3});
  ASSERT_TRUE(first->connect().is_ok() && second.connect().is_ok());
  whole.reset();
  first.reset();
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // for a failure that must not come
  for (Rank rank = 0; rank < 3; ++rank) EXPECT_FALSE(second[rank].failed()) << second[rank].status().message();
  test::ConnectedCluster third(second, {0, 1});
  EXPECT_TRUE(carries(second, 2) && carries(third, 0));
}
INSTANTIATE_TEST_SUITE_P(Tls, Parts, testing::Bool());

TEST(PartsOfAWhole, OfOneHostNeedNothingOfIt) {
  test::ConnectedCluster whole({2, 2});
  test::ConnectedCluster part(whole, {2, 3});
  EXPECT_EQ(part.addresses()[0].agreement, "");
  EXPECT_TRUE(carries(part, 1));
}

// One rank leaves all that it is in, without an end of the others' other communicators.
TEST(PartsOfAWhole, HearOfALeaveInOrderInTheirOwnStream) {
  test::ConnectedCluster whole({1, 1, 1});
  test::Cluster part(whole, {0, 1}), rest(whole, {0, 2});
  ASSERT_TRUE(part.connect().is_ok() && rest.connect().is_ok());
  whole.destroy(1);
  part.destroy(1);
  std::this_thread::sleep_for(std::chrono::milliseconds(100));  // for a failure that must not come
  EXPECT_FALSE(whole[0].failed() || whole[2].failed() || part[0].failed() || rest[0].failed());
  EXPECT_TRUE(carries(rest, 1));
}

TEST(PartsOfAWhole, StartAtOnceInSeveralThreads) {
  test::ConnectedCluster whole({2, 2, 2});
  test::ConnectedCluster other(whole, {0, 1, 2, 3, 4, 5});
  for (int round = 0; round < 5; ++round) {
    // Both need connections between hosts 1 and 2, which nobody has the first time.
    const std::vector<Rank> ranks{2, 3, 4, 5};
    std::vector<std::unique_ptr<test::Cluster>> parts(2);
    std::vector<std::jthread> threads;
    for (size_t i = 0; i < 2; ++i)
      threads.emplace_back([&, i] {
        parts[i] = std::make_unique<test::Cluster>(i == 0 ? whole : other, ranks);
        EXPECT_EQ(parts[i]->connect().message(), "");
      });
    threads.clear();
    for (const auto& part : parts) EXPECT_TRUE(carries(*part, round % 4));
  }
  EXPECT_FALSE(whole[0].failed() || other[0].failed());
}

// A rank that dies after it has said what it holds, and before its part is connected.
TEST(PartsOfAWhole, FindOutThatARankEndsWhileTheyStart) {
  test::ConnectedCluster whole({1, 1});
  test::Cluster part(whole, {0, 1});
  const auto addresses = part.addresses();
  part.destroy(1);
  (void)part[0].connect(addresses, Deadline::after_ms(5000));
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // for a failure that must not come
  EXPECT_FALSE(whole[0].failed());
}

TEST(PartsOfAWhole, AgreeOverThePortOfTheFamily) {
  test::ConnectedCluster whole({2, 2});
  test::Cluster first(whole, {0, 1, 2, 3}), second(whole, {1, 2, 3});
  ASSERT_TRUE(first.connect().is_ok() && second.connect().is_ok());
  EXPECT_EQ(first.addresses()[1].agreement, second.addresses()[0].agreement);
  EXPECT_EQ(first.addresses()[1].agreement, whole.addresses()[1].agreement);
  const auto agree = [](test::Cluster& on) {
    std::vector<std::jthread> threads;
    for (Rank rank = 0; rank < on.ranks(); ++rank)
      threads.emplace_back([&on, rank] {
        ConsensusTerms terms;
        terms.call = 7;
        terms.flags = ~uint64_t{0} ^ (uint64_t{1} << rank);
        const auto found = on[rank].agree(terms, {}, Deadline::after_ms(20000));
        ASSERT_TRUE(found) << found.error().message();
        EXPECT_EQ(found->in.size(), static_cast<size_t>(on.ranks()));
        EXPECT_EQ(found->flags, ~uint64_t{0} << on.ranks());
      });
  };
  // At once.
  std::jthread beside([&] { agree(first); });
  agree(second);
  beside.join();
  agree(whole);
}

}  // namespace
}  // namespace ccom
