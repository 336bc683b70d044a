// SPDX-License-Identifier: Apache-2.0
//
// Who is at the other end of a Unix socket. What keeps other users out of sockets that they can reach.
#pragma once

namespace ccom {

// Whether the process that has made the other end of a connected Unix socket belongs to this user.
bool is_of_this_user(int socket);

}  // namespace ccom
