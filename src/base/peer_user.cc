// SPDX-License-Identifier: Apache-2.0
#include "base/peer_user.h"

#include <sys/socket.h>
#include <unistd.h>

namespace ccom {

bool is_of_this_user(int socket) {
  ucred peer{};
  socklen_t length = sizeof peer;
  return ::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 && peer.uid == ::geteuid();
}

}  // namespace ccom
