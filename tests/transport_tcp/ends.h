// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <vector>

#include "transports/tcp/line.h"

namespace ccom::tcp {

// Connections of which the test holds the other ends.
struct Ends {
  explicit Ends(size_t count) {
    for (size_t i = 0; i < count; ++i) {
      int pair[2];
      if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair) != 0) std::abort();
      static boost::asio::io_context context;
      Socket socket(context);
      if (adopt(socket, Descriptor(pair[0]))) std::abort();
      lines.push_back(std::make_unique<Line>(std::move(socket)));
      far.push_back(pair[1]);
    }
  }
  ~Ends() {
    for (const int fd : far) ::close(fd);
  }
  Ends(const Ends&) = delete;
  Ends& operator=(const Ends&) = delete;
  std::vector<std::unique_ptr<Line>> lines;
  std::vector<int> far;
};

}  // namespace ccom::tcp
