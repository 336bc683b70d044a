// SPDX-License-Identifier: Apache-2.0
//
// Ids made in this process: their servers are on the chosen interface, do not hold up the process's end, and do
// not trouble a child made by fork.
#include "bootstrap/rendezvous_servers.h"

#include <openssl/evp.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <set>
#include <vector>

#include "base/network.h"
#include "test_rendezvous.h"
#include "tests/base_network/free_ports.h"

namespace ccom {
namespace {

using namespace ccom::testing;
using ::testing::HasSubstr;

TEST(RendezvousServers, IsOnTheChosenInterface) {
  const auto id = value_of(create_unique_id("lo", {}, soon()));
  EXPECT_TRUE(is_loopback_address(id.address)) << id.address;
  EXPECT_FALSE(id.rank0_serves);
  run_ranks(2, [&](Rank rank) { EXPECT_TRUE(connect_rendezvous(id, 2, rank, soon())); });
}

TEST(RendezvousServers, NamesAnInterfaceThatIsNotThere) {
  EXPECT_EQ(error_of(create_unique_id("nosuch0", {}, soon())).code(), Code::ConfigError);
}

TEST(RendezvousServers, GivesEveryIdASecretAndANumberOfItsOwn) {
  const auto first = create_unique_id("lo", {}, soon());
  const auto second = create_unique_id("lo", {}, soon());
  ASSERT_TRUE(first && second);
  EXPECT_NE(first->communicator, second->communicator);
  EXPECT_NE(first->port, second->port);
  UniqueId mixed = *first;
  mixed.secret = second->secret;
  EXPECT_THAT(message_of(connect_rendezvous(mixed, 1, 0, soon())), HasSubstr("secret"));
  for (const UniqueId& id : {*first, *second}) EXPECT_TRUE(connect_rendezvous(id, 1, 0, soon()));
}

// On lo's next address when all ports of the first one are taken.
TEST(RendezvousServers, TakesTheNextFreePortOfTheRange) {
  const PortRange ports = free_ports(2);
  std::set<std::string> endpoints;
  std::vector<UniqueId> ids;
  auto next = create_unique_id("lo", ports, soon());
  for (; next && ids.size() < 100; next = create_unique_id("lo", ports, soon())) {
    EXPECT_TRUE(next->port >= ports.low && next->port <= ports.high) << next->port;
    endpoints.insert(next->endpoint());
    ids.push_back(*next);
  }
  EXPECT_EQ(endpoints.size(), ids.size());
  EXPECT_GE(ids.size(), 2U);
  EXPECT_THAT(message_of(next), HasSubstr("every port of CCOM_PORT_RANGE="));
  for (const UniqueId& id : ids) EXPECT_TRUE(connect_rendezvous(id, 1, 0, soon()));
}

// Several communicators start at once in one process.
TEST(RendezvousServers, RunsManyServersSideBySide) {
  run_ranks(4, [](Rank) {
    const auto id = value_of(create_unique_id("lo", {}, soon()));
    run_ranks(2, [&](Rank rank) {
      const auto rendezvous = value_of(connect_rendezvous(id, 2, rank, soon()));
      EXPECT_TRUE(rendezvous->all_gather("round", "x", soon()));
    });
  });
}

// In a fresh process, because exit() runs only once and fork wants no other threads.
TEST(RendezvousServersDeathTest, DoesNotHoldUpTheExitOfItsProcess) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        const auto id = create_unique_id("lo", {}, Deadline::after_ms(60000));
        const auto rendezvous = connect_rendezvous(*id, 2, 0, soon());  // destroyed never, as when a program gives up
        std::exit(id && rendezvous ? 7 : 8);
      },
      ::testing::ExitedWithCode(7), "");
}

// OpenSSL's own cleanup at exit came before the end of the servers that used it: about one process in 500 that served
// and then failed ended by a segmentation fault. Handlers run in reverse order, so this one would come after it.
TEST(RendezvousServersDeathTest, OpenSslWorksUntilTheProcessHasEnded) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        static const auto digest = [](unsigned char* to) {
          return EVP_Digest("ccom", 4, to, nullptr, EVP_sha256(), nullptr);
        };
        (void)std::atexit([] {
          unsigned char late[EVP_MAX_MD_SIZE];
          ::_exit(digest(late) == 1 ? 7 : 8);
        });
        const auto id = create_unique_id("lo", {}, soon());
        unsigned char early[EVP_MAX_MD_SIZE];
        std::exit(id && digest(early) == 1 ? 7 : 9);
      },
      ::testing::ExitedWithCode(7), "");
}

TEST(RendezvousServersDeathTest, ChildrenOfItsProcessEndAsUsual) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "in the child, the thread sanitizer misses the join of a thread that only the parent had";
#elif defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "in the child, the leak sanitizer misses what threads hold that only the parent had";
#endif
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        const auto id = create_unique_id("lo", {}, soon());
        { const auto rendezvous = connect_rendezvous(*id, 1, 0, soon()); }
        std::atomic<bool> has_ended = false;
        when_rendezvous_ends(*id, [&has_ended] { has_ended = true; });
        while (!has_ended) std::this_thread::yield();
        const pid_t child = ::fork();
        if (child == 0) std::exit(3);
        int status = 0;
        ::waitpid(child, &status, 0);
        std::exit(WIFEXITED(status) ? WEXITSTATUS(status) : 9);
      },
      ::testing::ExitedWithCode(3), "");
}

}  // namespace
}  // namespace ccom
