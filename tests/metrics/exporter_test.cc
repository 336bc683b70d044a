// SPDX-License-Identifier: Apache-2.0
//
// The exporter's thread beside threads that count, begin and end communicators; a forked child; its end.
#include "metrics/exporter.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <deque>
#include <filesystem>
#include <functional>
#include <thread>

#include "base/descriptor.h"
#include "base/tcp_socket.h"
#include "metrics/http_port.h"
#include "tests/harness/child.h"
#include "tests/harness/folder.h"
#include "tests/harness/threads.h"

namespace ccom {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class Exporter : public ::testing::Test {
 protected:
  const TemporaryFolder folder_;
  std::unique_ptr<ActivityRecord> record_ = std::make_unique<ActivityRecord>();
  MetricsTarget target() const { return {.path = folder_ / "%r"}; }
  PublishedSource source(uint64_t communicator) const {
    PublishedSource made;
    made.communicator = communicator;
    made.rank = 2;
    made.ranks = 4;
    made.record = record_.get();
    made.has_failed = [] { return false; };
    return made;
  }
};

TEST_F(Exporter, TheFileHasTheLastWords) {
  {
    const PublishedRank published(target(), source(1));
    for (int call = 0; call < 5; ++call) CallCounters::count(record_->counters.cell_of(Collective::AllReduce, 8), 8);
  }
  EXPECT_THAT(contents_of(folder_ / "2"), HasSubstr("up_to_bytes=\"64\"} 5\n"));
  EXPECT_THAT(contents_of(folder_ / "2"), EndsWith("# EOF\n"));
  EXPECT_EQ(entries_of(folder_.path()), 1);  // nothing half-written remains
}

TEST_F(Exporter, CountsGoOnBesideIt) {
  std::atomic<bool> ends{false};
  std::thread counting([&] {
    while (!ends) CallCounters::count(record_->counters.cell_of(Collective::AllReduce, 8), 8);
  });
  for (int round = 0; round < 50; ++round) {
    const PublishedRank first(target(), source(1));
    run_threads(4, [&](uint64_t i) { PublishedRank other(target(), source(10 + i)); });
  }
  ends = true;
  counting.join();
}

TEST_F(Exporter, AForkedChildEndsWithoutItsThread) {
  PublishedRank published(target(), source(1));
  EXPECT_TRUE(holds_in_child(
      [&] {
        published = PublishedRank();
        return true;
      },
      20));
}

// One request on a connection of its own.
class HttpClient {
 public:
  explicit HttpClient(uint16_t port) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  }
  void send(const std::string& text) const {
    EXPECT_GT(::send(socket_.get(), text.data(), text.size(), MSG_NOSIGNAL), 0);
  }
  // All that comes while the port is served.
  std::string receive(HttpPort& port) const {
    std::string text;
    for (int round = 0; round < 200; ++round) {
      port.serve();
      char bytes[4096];
      const ssize_t got = ::recv(socket_.get(), bytes, sizeof bytes, MSG_DONTWAIT);
      if (got == 0) break;
      if (got > 0) text.append(bytes, static_cast<size_t>(got));
      if (got < 0) ::usleep(1000);
    }
    return text;
  }

  // All that comes in that time while another thread serves the port.
  std::string receive_for(std::chrono::seconds time) const {
    const timeval limit{.tv_sec = time.count(), .tv_usec = 0};
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    std::string text;
    char bytes[4096];
    for (ssize_t got; (got = ::recv(socket_.get(), bytes, sizeof bytes, 0)) > 0;)
      text.append(bytes, static_cast<size_t>(got));
    return text;
  }

 private:
  Descriptor socket_;
};

std::unique_ptr<HttpPort> open_port(const std::string& text) {
  return HttpPort::open("127.0.0.1", 0, [text] { return text; }).value();
}

TEST(HttpPort, AnswersGetOfMetrics) {
  const auto port = open_port("words\n");
  const HttpClient client(port->port());
  client.send("GET /metrics?x=1 HTTP/1.1\r\nHost: a\r\n\r\n");
  const std::string answer = client.receive(*port);
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(answer, HasSubstr("openmetrics-text"));
  EXPECT_THAT(answer, EndsWith("\r\n\r\nwords\n"));
}

TEST(HttpPort, RequestsMayComeInPieces) {
  const auto port = open_port("words\n");
  const HttpClient client(port->port());
  for (const char* piece : {"GET /met", "rics HTTP/1.0\r", "\n\r\n"}) {
    client.send(piece);
    ::usleep(2000);
    port->serve();
  }
  EXPECT_THAT(client.receive(*port), EndsWith("words\n"));
}

TEST(HttpPort, RefusesEverythingElse) {
  const auto port = open_port("words\n");
  const std::vector<std::pair<std::string, std::string>> refused{
      {"GET / HTTP/1.1\r\n\r\n", "HTTP/1.1 404"},
      {"POST /metrics HTTP/1.1\r\n\r\n", "HTTP/1.1 405"},
      {"words of no protocol\r\n\r\n", "HTTP/1.1 400"},
      {"\r\n\r\n", ""},
      {std::string(100, '\0'), "HTTP/1.1 400"},
      {"GET /metrics HTTP/1.1\r\nX: " + std::string(20000, 'y'), "HTTP/1.1 400"}};
  for (const auto& [request, answer] : refused) {
    const HttpClient client(port->port());
    client.send(request);
    EXPECT_THAT(client.receive(*port), StartsWith(answer)) << request.substr(0, 40);
  }
}

TEST(HttpPort, ManySilentClientsDoNotKeepOthersOut) {
  const auto port = open_port("words\n");
  std::vector<std::unique_ptr<HttpClient>> silent;
  for (size_t i = 0; i < 3 * HttpPort::kMostConnections; ++i) {
    silent.push_back(std::make_unique<HttpClient>(port->port()));
    port->serve();
  }
  std::vector<pollfd> polled;
  port->watch(polled);
  EXPECT_EQ(polled.size(), HttpPort::kMostConnections + 1);
  const HttpClient client(port->port());
  client.send("GET /metrics HTTP/1.1\r\n\r\n");
  EXPECT_THAT(client.receive(*port), EndsWith("words\n"));
}

uint16_t free_port() { return open_port("")->port(); }

// What the thread of this process with that name has used.
double cpu_seconds_of(const std::string& name) {
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    if (contents_of(task.path() / "comm") != name + "\n") continue;
    return std::stod(contents_of(task.path() / "schedstat")) / 1e9;
  }
  ADD_FAILURE() << "no thread " << name;
  return 0;
}

// A client of a program: its request, and the answer in two seconds.
std::string scrape(uint16_t port) {
  const HttpClient client(port);
  client.send("GET /metrics HTTP/1.1\r\n\r\n");
  return client.receive_for(std::chrono::seconds(2));
}

// U16: the oldest clients made room before they were looked at, and each newcomer woke the thread.
TEST(HttpPort, AnEndlessLoopOfConnectionsCostsLittleAndKeepsNobodyOut) {
  const auto record = std::make_unique<ActivityRecord>();
  PublishedSource source;
  source.record = record.get();
  source.ranks = 1;
  source.has_failed = [] { return false; };
  const uint16_t port = free_port();
  const PublishedRank published({.path = "", .address = "127.0.0.1", .port = port}, std::move(source));
  const auto connect_and_hold = [port](const std::atomic<bool>& ends, size_t held) {
    std::deque<HttpClient> open;
    while (!ends) {
      open.emplace_back(port);
      if (open.size() > held) open.pop_front();
    }
  };
  const std::function<void(const std::atomic<bool>&)> loops[] = {
      [&](const auto& ends) { connect_and_hold(ends, 0); },
      [&](const auto& ends) { connect_and_hold(ends, 3 * HttpPort::kMostConnections); },
      [&](const auto& ends) {
        while (!ends) (void)scrape(port);
      },
  };
  for (size_t i = 0; i < std::size(loops); ++i) {
    std::atomic<bool> ends{false};
    std::thread loop([&] { loops[i](ends); });
    const double cpu_before = cpu_seconds_of("ccom-metrics");
    const auto begin = std::chrono::steady_clock::now();
    for (int k = 0; k < 20; ++k) EXPECT_THAT(scrape(port), EndsWith("# EOF\n")) << k << " of 20, loop " << i;
    std::this_thread::sleep_until(begin + std::chrono::seconds(1));
    const double share = (cpu_seconds_of("ccom-metrics") - cpu_before) /
                         std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    ends = true;
    loop.join();
    std::printf("loop %zu: %.3f of a core\n", i, share);
    EXPECT_LT(share, 0.1) << "loop " << i;
  }
}

}  // namespace
}  // namespace ccom
