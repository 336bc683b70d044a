// SPDX-License-Identifier: Apache-2.0
//
// Processes that are killed while ranks meet: who is named, and how soon.
#include "test_rendezvous.h"
#include "tests/harness/child.h"
#include "tests/harness/waiting.h"

namespace ccom {
namespace {

using namespace ccom::testing;
using ::testing::ElementsAre;

int serve(bool joins, const PacketSocket& test) {
  test.receive();
  const TestServer hosted = start_test_server();
  const auto packed = *pack(hosted.id);
  std::unique_ptr<Rendezvous> rank0;
  if (joins) rank0 = *meet(hosted.id, 2, 0, soon());
  test.send_value(packed);
  return ::pause();
}

int join_as_rank_one(const PacketSocket& test) {
  const auto rendezvous = meet(*unpack(test.receive_value<UniqueId::Packed>()), 2, 1, soon());
  test.send("!");
  return ::pause();
}

// Dies before another byte can leave it.
int join_as_rank_one_and_die(const PacketSocket& test) {
  const auto rendezvous = meet(*unpack(test.receive_value<UniqueId::Packed>()), 2, 1, soon());
  return ::raise(SIGKILL);
}

class LostRanks : public ::testing::Test {
 protected:
  static constexpr int kDying = 8;
  static void SetUpTestSuite() {
    const auto lives = [](const std::function<int(const PacketSocket&)>& body) {
      return std::make_unique<Child>(body, kSuiteSeconds);
    };
    for (int i = 0; i < kDying; ++i) dying.push_back(lives(join_as_rank_one_and_die));
    joined_rank0 = lives([](const PacketSocket& test) { return serve(true, test); });
    serving_rank0 = lives([](const PacketSocket& test) { return serve(false, test); });
    rank1 = lives(join_as_rank_one);
    waiting_rank0 = lives([](const PacketSocket& test) { return serve(true, test); });
    waited_for = lives(join_as_rank_one);
  }
  static void TearDownTestSuite() {
    joined_rank0.reset();
    serving_rank0.reset();
    rank1.reset();
    waiting_rank0.reset();
    waited_for.reset();
    dying.clear();
  }
  // Of the server that it runs, as rank 0.
  static UniqueId served_by(Child& rank0) {
    rank0.send("!");
    return unpack(rank0.receive_value<UniqueId::Packed>()).value();
  }
  // As rank 0, while the child joins as rank 1.
  static Result<std::unique_ptr<Rendezvous>> join_beside(Child& other, const UniqueId& id) {
    other.send_value(*pack(id));
    auto rank0 = meet(id, 2, 0, soon());
    if (rank0) {
      EXPECT_EQ(other.receive(), "!");
    }
    return rank0;
  }

  // The error of an exchange in which `victim` is killed.
  static Status exchange_and_kill(Rendezvous& rendezvous, Child& victim) {
    std::jthread killer([&victim] {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));  // the exchange is under way
      victim.kill();
    });
    const auto start = Clock::now();
    Status failure = error_of(rendezvous.all_gather("addresses", "x", soon()));
    EXPECT_LT(Clock::now() - start, std::chrono::seconds(2)) << "not at the timeout";
    return failure;
  }

  // The same between two exchanges, while `rendezvous` asks for nothing.
  static Status wait_and_kill(Rendezvous& rendezvous, Child& victim) {
    EXPECT_FALSE(rendezvous.has_failed());
    victim.kill();
    EXPECT_TRUE(wait_until([&] { return rendezvous.has_failed(); }, std::chrono::seconds(2))) << "not at the timeout";
    return error_of(rendezvous.all_gather("addresses", "x", soon()));
  }

  static inline std::unique_ptr<Child> joined_rank0, serving_rank0, rank1, waiting_rank0, waited_for;
  static inline std::vector<std::unique_ptr<Child>> dying;
};

TEST_F(LostRanks, ADeadRankZeroIsNamedWithItsProcess) {
  const auto rendezvous = value_of(meet(served_by(*joined_rank0), 2, 1, soon()));
  expect_named(exchange_and_kill(*rendezvous, *joined_rank0), 0);
}

// The id says that it is rank 0's, as those of urls do.
TEST_F(LostRanks, ADeadRankZeroIsNamedAlsoBeforeItHasJoined) {
  UniqueId id = served_by(*serving_rank0);
  id.rank0_made = true;
  const auto rendezvous = value_of(meet(id, 2, 1, soon()));
  expect_named(exchange_and_kill(*rendezvous, *serving_rank0), 0);
}

// Rank 1 has joined and is busy with something else when it dies.
TEST_F(LostRanks, ARankThatDiesBetweenExchangesIsNamedAtOnce) {
  const TestServer hosted = start_test_server();
  const auto rank0 = value_of(join_beside(*rank1, hosted.id));
  expect_named(exchange_and_kill(*rank0, *rank1), 1);
}

// Its presence reached the server only after its join had been answered, so a rank that died between the two was missed
// at the timeout, 20 s later.
TEST_F(LostRanks, ARankThatDiesAsSoonAsItHasJoinedIsNamedAtOnce) {
  for (const auto& child : dying) {
    const TestServer hosted = start_test_server();
    const auto rank0 = value_of(meet(hosted.id, 2, 0, soon()));
    child->send_value(*pack(hosted.id));
    ASSERT_TRUE(wait_until([&] { return rank0->has_failed(); }, std::chrono::seconds(20))) << "at the timeout";
    expect_named(error_of(rank0->all_gather("addresses", "x", soon())), 1);
  }
}

// As ranks do that wait for each other's connections.
TEST_F(LostRanks, ARankThatDiesIsKnownToThoseThatWaitForItOutsideOfExchanges) {
  const TestServer hosted = start_test_server();
  const auto rank0 = value_of(join_beside(*waited_for, hosted.id));
  expect_named(wait_and_kill(*rank0, *waited_for), 1);
}

TEST_F(LostRanks, ADeadRankZeroIsKnownToThoseThatWaitForItOutsideOfExchanges) {
  const auto rendezvous = value_of(meet(served_by(*waiting_rank0), 2, 1, soon()));
  expect_named(wait_and_kill(*rendezvous, *waiting_rank0), 0);
}

// Rank 0, in whose process the server runs, hears first that rank 1 was lost, and ends: the others blamed rank 0.
TEST_F(LostRanks, ARankThatAsksAfterRankZeroHasGivenUpIsToldWhoWasLost) {
  TestServer hosted = start_test_server();
  auto rank0 = meet(hosted.id, 4, 0, soon());
  const auto rank2 = meet(hosted.id, 4, 2, soon());
  ASSERT_TRUE(rank0 && rank2);
  auto leaves = meet(hosted.id, 4, 1, soon());
  std::thread waiting([&] { EXPECT_FALSE((*rank0)->all_gather("addresses", "x", soon())); });
  std::this_thread::sleep_for(std::chrono::milliseconds(100));  // it waits by now
  leaves->reset();
  waiting.join();
  rank0->reset();
  std::jthread end([&] { hosted.server.reset(); });
  std::this_thread::sleep_for(std::chrono::milliseconds(300));  // the server is ending
  const Status late = error_of((*rank2)->all_gather("addresses", "x", soon()));
  EXPECT_THAT(late.peers(), ElementsAre(1)) << late.message();
  const Status later = error_of(meet(hosted.id, 4, 3, soon()));
  EXPECT_THAT(later.peers(), ElementsAre(1)) << later.message();
}

}  // namespace
}  // namespace ccom
