// SPDX-License-Identifier: Apache-2.0
//
// All-gathers of messages: what every rank gets when one has an error, or sends what cannot be read.
#include "setup/exchange.h"

#include <gtest/gtest.h>

#include <thread>

#include "bootstrap/local_rendezvous.h"
#include "control/error_codec.h"
#include "setup/exchanges.pb.h"
#include "tests/setup/made_rendezvous.h"

namespace ccom {
namespace {

// The last part is ours; the others are given.
MadeRendezvous given_parts(std::vector<std::string> others) {
  return MadeRendezvous([others = std::move(others)](std::string_view, std::string mine, Deadline) {
    std::vector<std::string> all = others;
    all.push_back(std::move(mine));
    return all;
  });
}

wire::Connected connected(uint64_t topology) {
  wire::Connected message;
  message.set_topology(topology);
  message.set_arenas(true);
  message.set_reads(false);
  message.set_fences(true);
  return message;
}

std::string part_with(const std::string& message) {
  wire::Part part;
  part.set_message(message);
  return part.SerializeAsString();
}

std::string part_with(const Status& error) {
  wire::Part part;
  put_error(error, *part.mutable_error());
  return part.SerializeAsString();
}

Result<std::vector<wire::Connected>> exchange_with(std::vector<std::string> others) {
  MadeRendezvous rendezvous = given_parts(std::move(others));
  return exchange(rendezvous, "connections", Result(connected(7)), Deadline::after_ms(1000));
}

TEST(Exchange, GivesEveryRanksMessageByRank) {
  const auto all =
      exchange_with({part_with(connected(5).SerializeAsString()), part_with(connected(6).SerializeAsString())});
  ASSERT_TRUE(all) << all.error().message();
  ASSERT_EQ(all->size(), 3u);
  for (size_t rank = 0; rank < 3; ++rank) EXPECT_EQ((*all)[rank].topology(), 5 + rank);
  EXPECT_TRUE((*all)[0].fences());
  EXPECT_FALSE((*all)[0].reads());
}

void expect_blamed(const Result<std::vector<wire::Connected>>& all, Code code, int rank, const std::string& text) {
  ASSERT_FALSE(all);
  EXPECT_EQ(all.error().code(), code);
  EXPECT_EQ(all.error().peers(), std::vector<int>{rank});
  EXPECT_NE(all.error().message().find("rank " + std::to_string(rank) + ", connections: " + text), std::string::npos)
      << all.error().message();
}

TEST(Exchange, ARanksErrorIsEverybodysWithItsCure) {
  const Status failed = error(ErrorKey::ArenaFull, "no room").with_cure("make room");
  const auto all = exchange_with({part_with(connected(5).SerializeAsString()), part_with(failed)});
  expect_blamed(all, Code::OutOfMemory, 1, "no room");
  EXPECT_EQ(all.error().cure(), "make room");
  EXPECT_EQ(all.error().key(), ErrorKey::ArenaFull);
}

TEST(Exchange, OurOwnErrorIsWhatAllRanksGet) {
  MadeRendezvous rendezvous = given_parts({part_with("")});
  const auto all = exchange(rendezvous, "connections", Result<wire::Connected>(error(Code::ConfigError, "mine")),
                            Deadline::after_ms(1000));
  ASSERT_FALSE(all);
  EXPECT_EQ(all.error().message(), "rank 1, connections: mine");
  EXPECT_EQ(all.error().peers(), std::vector<int>{1});
}

// U13: each of them told its own, and the others told of whom they had heard it.
TEST(Exchange, RanksThatDoNotReachEachOtherAreBothNamedToAll) {
  const auto failed = [](Rank peer) {
    return error(ErrorKey::RankLate, "no connection to rank %d", peer)
        .with_peers({peer})
        .with_host("host " + std::to_string(peer))
        .with_errno(110 + peer)
        .with_cure("cure " + std::to_string(peer));
  };
  const std::vector<std::string> others{part_with(connected(5).SerializeAsString()), part_with(failed(2))};
  MadeRendezvous rendezvous = given_parts(others);
  const auto all = exchange(rendezvous, "connections", Result<wire::Connected>(failed(1)), Deadline::after_ms(1000));
  ASSERT_FALSE(all);
  EXPECT_EQ(all.error().message(), "rank 1, connections: no connection to rank 2");
  EXPECT_EQ(all.error().peers(), (std::vector<int>{1, 2}));
  EXPECT_EQ(all.error().host(), "host 1");  // of the first of them, of which the other has told
  EXPECT_EQ(all.error().sys_errno(), 112);
  EXPECT_EQ(all.error().cure(), "cure 2");
}

// What a rank returns of an exchange in which these ranks have these errors.
std::vector<Status> errors_of_all(const std::vector<Status>& own) {
  const std::shared_ptr<LocalHub> hub = LocalHub::create();
  std::vector<Status> found(own.size());
  std::vector<std::thread> ranks;
  for (size_t rank = 0; rank < own.size(); ++rank) {
    ranks.emplace_back([&, rank] {
      const auto rendezvous = hub->join(static_cast<int>(own.size()), static_cast<Rank>(rank));
      const Result<wire::Connected> mine =
          own[rank].is_ok() ? Result(connected(7)) : Result<wire::Connected>(own[rank]);
      const auto all = exchange(**rendezvous, "connections", mine, Deadline::after_ms(20000));
      if (!all) found[rank] = all.error();
    });
  }
  for (std::thread& rank : ranks) rank.join();
  return found;
}

TEST(Exchange, AllRanksReturnTheSameErrorWhoeverHasOne) {
  const auto failure = [](Rank rank, std::vector<int> peers) {
    return error(ErrorKey::NoControlConnection, "rank %d has failed", rank)
        .with_peers(std::move(peers))
        .with_host("host of " + std::to_string(rank))
        .with_errno(rank + 1)
        .with_cure("help rank " + std::to_string(rank));
  };
  // By rank; each blames these, or nobody.
  const std::vector<std::vector<Status>> cases{{{}, failure(1, {2}), failure(2, {1})},
                                               {failure(0, {}), {}, {}},
                                               {{}, {}, failure(2, {})},
                                               {failure(0, {1, 2}), failure(1, {}), failure(2, {0})},
                                               {{}, failure(1, {0}), {}}};
  for (const std::vector<Status>& own : cases) {
    const std::vector<Status> found = errors_of_all(own);
    ASSERT_FALSE(found[0].is_ok());
    for (const Status& each : found) {
      EXPECT_EQ(each.key(), ErrorKey::NoControlConnection);
      EXPECT_EQ(each.text(), found[0].text());
      EXPECT_EQ(each.peers(), found[0].peers());
      EXPECT_EQ(each.host(), found[0].host());
      EXPECT_EQ(each.sys_errno(), found[0].sys_errno());
    }
  }
}

TEST(AtItsHost, NamesTheHostOfTheFirstRank) {
  Topology topology;
  topology.hosts.resize(2);
  topology.hosts[0].name = "a";
  topology.hosts[1].name = "b";
  topology.ranks = {{.host = 0}, {.host = 1}};
  EXPECT_EQ(at_its_host(error(Code::Timeout, "late").with_peers({1}), topology).host(), "b");
  EXPECT_EQ(at_its_host(error(Code::Timeout, "late").with_peers({0, 1}).with_host("10.0.0.7"), topology).host(), "a");
  EXPECT_EQ(at_its_host(error(Code::Timeout, "late"), topology).host(), "");
  EXPECT_EQ(at_its_host(error(Code::Timeout, "late").with_peers({7}).with_host("c"), topology).host(), "c");
}

// A rendezvous server that does not answer in time, and one that knows who is lost.
MadeRendezvous failed_rendezvous(const Status& why) {
  return MadeRendezvous([why](std::string_view, std::string, Deadline) { return why; });
}

TEST(Exchange, OurOwnErrorSaysMoreThanAnAnswerThatDidNotCome) {
  const Result<wire::Connected> mine(error(Code::Timeout, "rank 3 did not connect").with_peers({3}));
  MadeRendezvous silent = failed_rendezvous(error(Code::Timeout, "no answer").with_peers({0}));
  EXPECT_EQ(exchange(silent, "connections", mine, Deadline::after_ms(1)).error().peers(), std::vector<int>{3});
  MadeRendezvous knowing = failed_rendezvous(error(Code::RemoteError, "rank 2 was lost").with_peers({2}));
  EXPECT_EQ(exchange(knowing, "connections", mine, Deadline::after_ms(1)).error().peers(), std::vector<int>{2});
}

TEST(Exchange, AMissingFieldNamesTheRank) {
  for (const auto clear : {&wire::Connected::clear_topology, &wire::Connected::clear_arenas,
                           &wire::Connected::clear_reads, &wire::Connected::clear_fences}) {
    wire::Connected message = connected(5);
    (message.*clear)();
    expect_blamed(exchange_with({part_with(message.SerializePartialAsString())}), Code::InternalError, 0,
                  "sent no required field");
  }
  expect_blamed(exchange_with({part_with("")}), Code::InternalError, 0, "sent no required field");
}

TEST(Exchange, PartsThatCannotBeReadNameTheRank) {
  const std::string whole = connected(5).SerializeAsString();
  const std::string good = part_with(whole);
  expect_blamed(exchange_with({good, ""}), Code::InternalError, 1, "sent no message");
  expect_blamed(exchange_with({good, "not a message"}), Code::InternalError, 1, "sent ");
  expect_blamed(exchange_with({good, good.substr(0, good.size() - 1)}), Code::InternalError, 1, "sent what cannot");
  expect_blamed(exchange_with({good, part_with(whole.substr(0, 5))}), Code::InternalError, 1, "sent what cannot");
  wire::Part no_error;
  put_error(error(Code::Timeout, "late"), *no_error.mutable_error());
  no_error.mutable_error()->set_code(0);
  expect_blamed(exchange_with({good, no_error.SerializeAsString()}), Code::InternalError, 1, "sent what cannot");
}

TEST(ExchangeStatus, IsTheFirstError) {
  MadeRendezvous good = given_parts({part_with("")});
  EXPECT_TRUE(exchange_status(good, "node", {}, Deadline::after_ms(1000)).is_ok());
  const Status late = error(Code::Timeout, "late");
  EXPECT_EQ(exchange_status(good, "node", late, Deadline::after_ms(1000)).code(), Code::Timeout);
}

}  // namespace
}  // namespace ccom
