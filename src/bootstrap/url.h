// SPDX-License-Identifier: Apache-2.0
//
// Unique ids from urls, for ranks that have no way of their own to hand 128 bytes around. All ranks pass the same url.
//
//   file:///path     Rank 0 makes an id and leaves it there, mode 0600; the others wait for it. A file of an older job
//   is
//                    told by asking the meeting point that it names: if nobody there holds the secret, or the rank has
//                    been there already, the reader looks again until rank 0 has replaced it. Removed when the meeting
//                    ends.
//   tcp://host:port  Rank 0 will listen there. The secret is made from CCOM_SECRET or the file CCOM_SECRET_FILE;
//   without one
//                    the host must be a loopback address (and any user of this host could join).
//   env://           One of the two, from the launcher's environment (launch.h).
#pragma once

#include <functional>
#include <string_view>

#include "base/status.h"
#include "base/time.h"
#include "bootstrap/launch.h"
#include "bootstrap/unique_id.h"

namespace ccom {

// Makes an id whose meeting point runs: create_unique_id with the caller's interface and deadline.
using MakeId = std::function<Result<UniqueId>()>;

// The environment of this process.
const char* process_environment(const char* name);

// Blocking until the deadline for file urls and slow name servers. Errors: InvalidArgument for a url that is none of
// the above, ConfigError for what the user must change, Timeout if rank 0 left no usable file.
Result<UniqueId> unique_id_from_url(std::string_view url, int nranks, Rank rank, Deadline deadline,
                                    const MakeId& make_id, const EnvironmentLookup& environment = process_environment);

}  // namespace ccom
