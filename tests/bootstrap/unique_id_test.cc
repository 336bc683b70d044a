// SPDX-License-Identifier: Apache-2.0
//
// The 128 bytes give back what was put in, and bytes that are not an id are told apart with a reason.
#include "bootstrap/unique_id.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/harness/results.h"

namespace ccom {
namespace {

using ::testing::HasSubstr;

UniqueId sample() {
  return {.address = "10.1.2.3", .port = 4100, .communicator = 0x0123456789abcdef, .secret = Secret::random()};
}

bool is_same_secret(const Secret& a, const Secret& b) { return std::ranges::equal(a.bytes(), b.bytes()); }

TEST(UniqueId, GivesBackWhatWasPacked) {
  for (const char* address : {"10.1.2.3", "127.0.0.1", "fd00::7", "::1"}) {
    for (const bool rank0_serves : {false, true}) {
      UniqueId id = sample();
      id.address = address;
      id.rank0_serves = rank0_serves;
      id.salt = 0x123456789abcdef0;
      const auto packed = value_of(pack(id));
      const auto back = unpack(packed);
      ASSERT_TRUE(back) << back.error().message();
      EXPECT_EQ(back->address, address);
      EXPECT_EQ(back->port, 4100);
      EXPECT_EQ(back->communicator, id.communicator);
      EXPECT_EQ(back->rank0_serves, rank0_serves);
      EXPECT_EQ(back->salt, id.salt);
      EXPECT_TRUE(is_same_secret(back->secret, id.secret));
    }
  }
}

TEST(UniqueId, IsWorthlessWhileItIsMasked) {
  UniqueId id;
  id.communicator = 7;
  id.secret = Secret::random();
  UniqueId other = id;
  other.communicator = 8;
  const auto text_of = [](const UniqueId& one) {
    return std::string(reinterpret_cast<const char*>(one.secret.bytes().data()), one.secret.bytes().size());
  };
  const Secret key = Secret::random();
  EXPECT_NE(text_of(masked(id, key, "a")), text_of(id));
  EXPECT_NE(text_of(masked(id, key, "a")), text_of(masked(id, key, "b")));
  EXPECT_NE(text_of(masked(id, key, "a")), text_of(masked(other, key, "a")));
  EXPECT_NE(text_of(masked(masked(id, Secret::random(), "a"), key, "a")), text_of(id));
  EXPECT_EQ(text_of(masked(masked(id, key, "a"), key, "a")), text_of(id));
}

TEST(UniqueId, RefusesAllZero) {
  const UniqueId::Packed zero{};
  const Status failure = error_of(unpack(zero));
  EXPECT_EQ(failure.code(), Code::InvalidArgument);
  EXPECT_THAT(failure.message(), HasSubstr("all zero"));
}

TEST(UniqueId, RefusesGarbage) {
  UniqueId::Packed garbage;
  fill_random(std::as_writable_bytes(std::span(garbage)));
  garbage[0] = 'x';
  EXPECT_THAT(error_of(unpack(garbage)).message(), HasSubstr("not created by ccom"));
}

TEST(UniqueId, RefusesAnotherVersion) {
  auto packed = *pack(sample());
  packed[4] = 9;
  EXPECT_THAT(error_of(unpack(packed)).message(), HasSubstr("version 9"));
}

TEST(UniqueId, RefusesEveryChangeOfOneByte) {
  const auto packed = *pack(sample());
  for (size_t i = 0; i < packed.size(); ++i) {
    auto damaged = packed;
    damaged[i] = static_cast<char>(damaged[i] ^ 1);
    EXPECT_FALSE(unpack(damaged)) << "byte " << i;
  }
}

// What a binding does that treats the bytes as a C string.
TEST(UniqueId, RefusesBytesCutAtTheFirstZero) {
  auto packed = *pack(sample());
  std::fill(std::ranges::find(packed, '\0'), packed.end(), '\0');
  EXPECT_FALSE(unpack(packed));
}

TEST(UniqueId, CannotBePackedWithoutAnAddress) {
  for (const char* address : {"", "node7", "0.0.0.0", "::", "::ffff:0.0.0.0", "10.0.0", "127.0.0.1:80"}) {
    UniqueId id = sample();
    id.address = address;
    EXPECT_FALSE(pack(id)) << address;
  }
  UniqueId id = sample();
  id.port = 0;
  EXPECT_FALSE(pack(id));
}

TEST(UniqueId, WritesEndpointsAsUrlsDo) {
  EXPECT_EQ(endpoint_text("10.0.0.7", 4100), "10.0.0.7:4100");
  EXPECT_EQ(endpoint_text("fd00::7", 4100), "[fd00::7]:4100");
}

TEST(UniqueId, KnowsLoopbackAddresses) {
  for (const char* address : {"127.0.0.1", "127.255.0.9", "::1", "::ffff:127.0.0.1"})
    EXPECT_TRUE(is_loopback_address(address));
  for (const char* address : {"128.0.0.1", "10.0.0.7", "::2", "fd00::7", "::ffff:10.0.0.1", "localhost", ""}) {
    EXPECT_FALSE(is_loopback_address(address)) << address;
  }
}

}  // namespace
}  // namespace ccom
