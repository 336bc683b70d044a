// SPDX-License-Identifier: Apache-2.0
//
// Crowds of strangers at the rendezvous server, and processes with few descriptors.
#include <openssl/ssl.h>

#include <filesystem>

#include "test_rendezvous.h"
#include "tests/base_network/strangers.h"
#include "tests/harness/resources.h"
#include "tests/harness/waiting.h"

namespace ccom {
namespace {

using namespace ccom::testing;

// What a TLS client without the secret sends first.
std::string client_hello() {
  const std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context(SSL_CTX_new(TLS_client_method()), &SSL_CTX_free);
  const std::unique_ptr<SSL, decltype(&SSL_free)> client(SSL_new(context.get()), &SSL_free);
  BIO* const out = BIO_new(BIO_s_mem());
  SSL_set_bio(client.get(), BIO_new(BIO_s_mem()), out);
  SSL_set_connect_state(client.get());
  (void)SSL_do_handshake(client.get());
  char* text = nullptr;
  const long length = BIO_get_mem_data(out, &text);
  return {text, static_cast<size_t>(length)};
}

void expect_two_ranks_meet(const UniqueId& id, int within_ms) {
  const auto start = Clock::now();
  run_ranks(2, [&id](Rank rank) {
    const auto rendezvous = value_of(connect_rendezvous(id, 2, rank, soon()));
    EXPECT_TRUE(rendezvous->all_gather("round", "x", soon()));
  });
  EXPECT_LT(Clock::now() - start, std::chrono::milliseconds(within_ms));
}

TEST(RendezvousStrangers, TwoThousandIdleAndTwoThousandLoudDoNotDelayTheRanks) {
  const TestServer hosted = start_test_server();
  const test::Strangers idle(hosted.id.port, 2000, ""), loud(hosted.id.port, 2000, std::string(400, '\xA5'));
  ASSERT_TRUE(idle.are_in() && loud.are_in());
  expect_two_ranks_meet(hosted.id, 2000);
}

// gRPC's own listener is closed for good then (CVE-2023-4785).
TEST(RendezvousStrangers, WhoUseUpTheDescriptorsDoNotCloseThePort) {
  const ScopedLimit few(RLIMIT_NOFILE, 256);
  const TestServer hosted = start_test_server();
  {
    const test::Strangers idle(hosted.id.port, 400, "");
    ASSERT_TRUE(idle.are_in());
    expect_two_ranks_meet(hosted.id, 2000);
  }
  const TestServer other = start_test_server();
  {
    const test::Strangers idle(other.id.port, 400, "");
    ASSERT_TRUE(idle.are_in());
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
  }
  expect_two_ranks_meet(other.id, 2000);
}

// gRPC kept each until its handshake timed out, after five seconds, and the ranks of this process had no descriptors.
TEST(RendezvousStrangers, WhoSpeakTlsDoNotDelayTheRanks) {
  const ScopedLimit few(RLIMIT_NOFILE, 256);
  const TestServer hosted = start_test_server();
  const int before = open_descriptors();
  const test::Strangers speaking(hosted.id.port, 400, client_hello());
  ASSERT_TRUE(speaking.are_in());
  // On a loaded machine some still wait to be refused: sooner than gRPC would have.
  const auto are_refused = [before] {
    try {
      return open_descriptors() < before + 100;
    } catch (const std::filesystem::filesystem_error&) {  // none is left to count them
      return false;
    }
  };
  ASSERT_TRUE(wait_until(are_refused, std::chrono::seconds(4)));
  expect_two_ranks_meet(hosted.id, 2000);
}

}  // namespace
}  // namespace ccom
