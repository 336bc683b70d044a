// SPDX-License-Identifier: Apache-2.0
//
// Processes that connect to a port and do not belong there. Their descriptors are not the test's.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "tests/harness/child.h"

namespace ccom::test {

class Strangers {
 public:
  // Returns when all have connected to 127.0.0.1:port and sent `words`; they stay until the end of this object.
  Strangers(uint16_t port, int count, const std::string& words)
      : process_([&](const PacketSocket& test) { return stay(port, count, words, test); }, 600),
        are_in_(process_.receive() == "in") {}
  bool are_in() const { return are_in_; }

 private:
  static int stay(uint16_t port, int count, const std::string& words, const PacketSocket& test) {
    rlimit limit{};
    ::getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &limit);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    for (int i = 0; i < count; ++i) {
      const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
      if (fd < 0 || ::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) return 1;
      if (!words.empty() && ::send(fd, words.data(), words.size(), MSG_NOSIGNAL) < 0 && errno != EPIPE &&
          errno != ECONNRESET)
        return 1;
    }
    test.send("in");
    return ::pause();
  }

  Child process_;
  bool are_in_;
};

inline uint16_t port_in(std::string_view address) {
  return static_cast<uint16_t>(std::atoi(std::string(address.substr(address.rfind(':') + 1)).c_str()));
}

// Whether one of three attempts takes less than the two seconds that a stranger may take. On a loaded machine the
// kernel may lose a peer's first message, which is repeated after a second or two.
template <typename Attempt>
bool is_sooner_than_a_stranger(const Attempt& attempt) {
  using std::chrono::steady_clock, std::chrono::milliseconds;
  for (int i = 0; i < 3; ++i) {
    const steady_clock::duration took = attempt();
    if (took < milliseconds(1500)) return true;
  }
  return false;
}

}  // namespace ccom::test
