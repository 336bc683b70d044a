// SPDX-License-Identifier: Apache-2.0
//
// Unique ids from urls, for ranks that have no other way to share 128 bytes. All ranks pass the same url.
//
//   file:///path     Rank 0 creates an id and writes it there with mode 0600; the others wait for it. Readers probe the
//                    server that the id names, to detect a file of an older job: if it does not hold the secret, or
//                    this rank has joined it before, they retry until rank 0 has replaced the file. Removed at the end
//                    of the rendezvous. If rank 0 can make none, it writes why: that becomes the others' error, at
//                    once, or after ten seconds if it was there when they came and may be an earlier job's. It stays
//                    until a rank 0 uses the same url.
//   tcp://host:port  Rank 0 listens there. The secret is derived from CCOM_SECRET or from the file CCOM_SECRET_FILE;
//                    and the port; without one the host must be a loopback address, and the user's own is used
//                    (user_secret.h).
//   env://           One of the two, from the launcher's environment (launch.h).
#pragma once

#include <functional>
#include <optional>
#include <string_view>

#include "base/status.h"
#include "base/time.h"
#include "bootstrap/launch.h"
#include "bootstrap/unique_id.h"

namespace ccom {

// Creates an id whose server is running: create_unique_id() with the caller's interface and deadline.
using MakeId = std::function<Result<UniqueId>()>;

// The environment of this process.
const char* process_environment(const char* name);

// Blocks until the deadline for file urls and slow name servers. Errors: InvalidArgument for a url of none of these
// forms, ConfigError for wrong settings, Timeout if rank 0 has written no usable file.
Result<UniqueId> unique_id_from_url(std::string_view url, int nranks, Rank rank, Deadline deadline,
                                    const MakeId& make_id, const EnvironmentLookup& environment = process_environment);

}  // namespace ccom
