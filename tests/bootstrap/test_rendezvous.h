// SPDX-License-Identifier: Apache-2.0
//
// Helpers for tests in which ranks are threads.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/descriptor.h"
#include "bootstrap/grpc_client.h"
#include "bootstrap/rendezvous_server.h"
#include "bootstrap/unique_id.h"
#include "tests/harness/environment.h"
#include "tests/harness/folder.h"
#include "tests/harness/results.h"
#include "tests/harness/threads.h"

namespace ccom::testing {

constexpr unsigned kSuiteSeconds = 600;  // of a child that waits for its test of a suite

inline Deadline soon() { return Deadline::after_ms(20000); }

#if defined(CCOM_MEET_BY_SOCKET)
constexpr bool kMeetsBySocket = true;
#else
constexpr bool kMeetsBySocket = false;
#endif
inline Result<std::unique_ptr<Rendezvous>> meet(const UniqueId& id, int nranks, Rank rank, Deadline deadline,
                                                Interrupted interrupted = {}) {
  return connect_rendezvous(id, nranks, rank, deadline, std::move(interrupted), {.has_socket = kMeetsBySocket});
}

// A rendezvous server on loopback and its id.
struct TestServer {
  std::unique_ptr<RendezvousServer> server;
  UniqueId id;
};

inline TestServer start_test_server(Deadline life = Deadline::after_ms(30000), int relays = 8) {
  TestServer hosted;
  hosted.id = {.address = "127.0.0.1", .communicator = 1, .secret = Secret::random()};
  auto server = RendezvousServer::start({.address = "127.0.0.1",
                                         .secret = hosted.id.secret,
                                         .communicator = hosted.id.communicator,
                                         .life = life,
                                         .relays = relays});
  if (!server) {
    ADD_FAILURE() << server.error().message();
    return hosted;
  }
  hosted.server = std::move(*server);
  hosted.id.port = hosted.server->port();
  return hosted;
}

// Of a listener on 127.0.0.1.
inline uint16_t port_of(const Descriptor& listener) {
  sockaddr_in at{};
  socklen_t length = sizeof at;
  EXPECT_EQ(::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&at), &length), 0);
  return ntohs(at.sin_port);
}

inline void expect_named(const Status& failure, Rank rank) {
  EXPECT_EQ(failure.code(), Code::RemoteError);
  EXPECT_THAT(failure.peers(), ::testing::ElementsAre(rank));
  EXPECT_THAT(failure.message(), ::testing::HasSubstr("rank " + std::to_string(rank) + " (process "));
}

}  // namespace ccom::testing
