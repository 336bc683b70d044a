// SPDX-License-Identifier: Apache-2.0
//
// Helpers for tests in which ranks are threads.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/descriptor.h"
#include "bootstrap/grpc_client.h"
#include "bootstrap/grpc_server.h"
#include "bootstrap/unique_id.h"

namespace ccom::testing {

inline Deadline soon() { return Deadline::after_ms(20000); }

// Calls `body(rank)` in a thread each.
template <typename Body>
void as_ranks(int nranks, const Body& body) {
  std::vector<std::thread> threads;
  threads.reserve(static_cast<size_t>(nranks));
  for (Rank rank = 0; rank < nranks; ++rank) threads.emplace_back([&body, rank] { body(rank); });
  for (std::thread& thread : threads) thread.join();
}

// A rendezvous server on loopback and its id.
struct TestServer {
  std::unique_ptr<RendezvousServer> server;
  UniqueId id;
};

inline TestServer start_test_server(Deadline life = Deadline::after_ms(30000), int relays = 8) {
  TestServer hosted;
  hosted.id = {.address = "127.0.0.1", .communicator = 1, .secret = Secret::random()};
  auto server =
      RendezvousServer::start({.address = "127.0.0.1", .secret = hosted.id.secret, .life = life, .relays = relays});
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

// "" if there is a value.
template <typename T>
std::string message_of(const Result<T>& result) {
  return result ? "" : result.error().message();
}

// How many threads this process has.
inline int count_threads() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return static_cast<int>(std::distance(begin(tasks), end(tasks)));
}

// A folder that goes away with the test.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "ccom-test-XXXXXX").string();
    path_ = ::mkdtemp(pattern.data());
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// Sets or, with nullptr, unsets a variable until the end of the scope.
class ScopedVariable {
 public:
  ScopedVariable(std::string name, const char* value) : name_(std::move(name)) {
    if (const char* old = std::getenv(name_.c_str())) old_ = old;
    set(value);
  }
  ~ScopedVariable() { set(old_ ? old_->c_str() : nullptr); }
  ScopedVariable(const ScopedVariable&) = delete;
  ScopedVariable& operator=(const ScopedVariable&) = delete;

 private:
  void set(const char* value) {
    if (value == nullptr) {
      ::unsetenv(name_.c_str());
    } else {
      ::setenv(name_.c_str(), value, 1);
    }
  }
  const std::string name_;
  std::optional<std::string> old_;
};

}  // namespace ccom::testing
