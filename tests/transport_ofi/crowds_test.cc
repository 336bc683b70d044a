// SPDX-License-Identifier: Apache-2.0
//
// Crowds at libfabric's own listeners, which are open as long as the job: docs/security.md has the figures.
#include <gtest/gtest.h>
#include <netinet/in.h>

#include "tests/base_network/strangers.h"
#include "tests/harness/environment.h"
#include "tests/harness/resources.h"
#include "tests/transport_ofi/ofi_job.h"
#include "transports/ofi/addresses.h"

namespace ccom::ofi {
namespace {

constexpr int kCrowd = 2000;

// Of the endpoint for messages.
uint16_t port_of(const std::string& address) {
  const std::string first = split_addresses(address).front();
  sockaddr_in parsed{};
  std::memcpy(&parsed, first.data(), std::min(first.size(), sizeof parsed));
  return ntohs(parsed.sin_port);
}

class Crowds : public ::testing::TestWithParam<const char*> {};
std::string words_of(std::string_view kind) {
  return kind == "idle" ? "" : kind == "begins" ? std::string("\x04\0\0", 3) : std::string(400, '\xA5');
}

// Libfabric looks at its listener now and then.
void run(OfiJob& job) {
  for (Token token = 1; token <= 20; ++token)
    ASSERT_TRUE(job.carry(1, 0, 50'000, token)) << job.report(0).status.message();
}

// After the start, when nobody connects any more, as before it.
TEST_P(Crowds, AtAnOpenListenerTakeNoDescriptors) {
  constexpr int kOfTheJob = 16;
  for (const bool is_before : {true, false}) {
    OfiJob job({});
    if (!is_before) {
      ASSERT_TRUE(job.connect_all());
    }
    const int descriptors = open_descriptors();
    const size_t memory = allocated_bytes();
    const test::Strangers crowd(port_of(job[0].address()), kCrowd, words_of(GetParam()));
    ASSERT_TRUE(crowd.are_in());
    if (is_before) {
      ASSERT_TRUE(job.connect_all());
    }
    run(job);
    EXPECT_LE(open_descriptors(), descriptors + kOfTheJob);
    if (!is_before) {
      EXPECT_LE(allocated_bytes(), memory + size_t{4096} * kCrowd);
    }
  }
}

TEST_P(Crowds, DoNotDisturbAJobThatHasFewDescriptorsLeft) {
  OfiJob job({});
  ASSERT_TRUE(job.connect_all());
  const ScopedLimit few(RLIMIT_NOFILE, static_cast<rlim_t>(open_descriptors() + 20));
  const test::Strangers crowd(port_of(job[0].address()), 200, words_of(GetParam()));
  run(job);
}

INSTANTIATE_TEST_SUITE_P(Kinds, Crowds, ::testing::Values("idle", "begins", "loud"));

}  // namespace
}  // namespace ccom::ofi
