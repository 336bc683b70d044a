// SPDX-License-Identifier: Apache-2.0
//
// The user's own secret on this machine: what keeps other users out where ranks meet at a loopback address and the job
// has no secret.
#pragma once

#include <string>

#include "base/secret.h"
#include "base/status.h"

namespace ccom {

// The same for all processes of this user that see the same `base`: random bytes in base/ccom-user-UID/secret (0700,
// 0600), which the first of them makes and nobody removes. Thread-safe. ConfigError if others could have read it.
Result<Secret> user_secret(const std::string& base = "/tmp");

}  // namespace ccom
