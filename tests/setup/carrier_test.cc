// SPDX-License-Identifier: Apache-2.0
//
// What carries messages between hosts when the user has left it open, and which interfaces a rank uses.
#include "setup/carrier.h"

#include <gtest/gtest.h>

namespace ccom {
namespace {

TEST(CarrierChoice, IsEfaOnlyIfAllHaveItAndTheUserSaidNothing) {
  EXPECT_EQ(choose_carrier({}, true).transport, "ofi");
  EXPECT_EQ(choose_carrier({}, true).ofi_provider, "efa");
  EXPECT_EQ(choose_carrier({}, false).transport, "tcp");
  EXPECT_EQ(choose_carrier({}, false).ofi_provider, "tcp;ofi_rxm");
  EXPECT_EQ(choose_carrier({{}, "sockets"}, true).transport, "tcp");
  EXPECT_EQ(choose_carrier({{}, "sockets"}, true).ofi_provider, "sockets");
  EXPECT_EQ(choose_carrier({.encrypted = true}, true).transport, "tcp");
  EXPECT_EQ(choose_carrier({{"ofi"}, ""}, true).ofi_provider, "efa");
  EXPECT_EQ(choose_carrier({{"shm", "ofi"}, ""}, false).ofi_provider, "tcp;ofi_rxm");
}

TEST(CarrierChoice, IsTcpWhereBytesMustBeEncrypted) {
  EXPECT_EQ(choose_carrier({{}, "", true}, true).transport, "tcp");
  EXPECT_FALSE(depends_on_efa({{}, "", true}, true));
}

TEST(CarrierChoice, AsksForEfaOnlyWhereTheAnswerCounts) {
  EXPECT_TRUE(depends_on_efa({}, true));
  EXPECT_FALSE(depends_on_efa({}, false)) << "one host needs no network";
  EXPECT_FALSE(depends_on_efa({{"shm", "tcp"}, ""}, true));
  EXPECT_FALSE(depends_on_efa({{}, "verbs"}, true));
  EXPECT_TRUE(depends_on_efa({{"ofi"}, ""}, false));
}

TEST(CarrierChoice, GivesEveryRankItsShareOfTheDomains) {
  const std::vector<std::string> eight = {"d7", "d1", "d0", "d2", "d3", "d4", "d5", "d6"};
  EXPECT_EQ(choose_domains(eight, 0, 1, 4), (std::vector<std::string>{"d0", "d1", "d2", "d3"}));
  EXPECT_EQ(choose_domains(eight, 1, 2, 4), (std::vector<std::string>{"d4", "d5", "d6", "d7"}));
  EXPECT_EQ(choose_domains(eight, 2, 3, 4), (std::vector<std::string>{"d4", "d5"}));
  EXPECT_EQ(choose_domains(eight, 31, 32, 4), (std::vector<std::string>{"d7"}));
  EXPECT_EQ(choose_domains(eight, 9, 32, 4), (std::vector<std::string>{"d2"}));
  EXPECT_TRUE(choose_domains({}, 0, 1, 4).empty());
  // p5.48xlarge with a rank per device, and with two.
  std::vector<std::string> cards;
  for (int card = 10; card < 42; ++card) cards.push_back("d" + std::to_string(card));
  EXPECT_EQ(choose_domains(cards, 7, 8, 16), (std::vector<std::string>{"d38", "d39", "d40", "d41"}));
  EXPECT_EQ(choose_domains(cards, 1, 2, 16), (std::vector<std::string>(cards.begin() + 16, cards.end())));
  EXPECT_EQ(choose_domains(cards, 0, 1, 16), (std::vector<std::string>(cards.begin(), cards.begin() + 16)));
}

}  // namespace
}  // namespace ccom
