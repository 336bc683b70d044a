// SPDX-License-Identifier: Apache-2.0
//
// One mapping of a host's shared segment per process, also when several ranks are its threads: one address for one
// byte. Who has obtained it puts it here, the process's other ranks wait for it. Thread-safe.
#pragma once

#include <memory>
#include <string>

#include "base/wait_limit.h"
#include "memory/shared_segment.h"

namespace ccom {

// Under the path where it is handed over, which is unique. An error is what the others get.
void put_segment(const std::string& path, Result<std::shared_ptr<SharedSegment>> segment);
Result<std::shared_ptr<SharedSegment>> await_segment(const std::string& path, const WaitLimit& limit);

}  // namespace ccom
