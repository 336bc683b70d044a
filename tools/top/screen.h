// SPDX-License-Identifier: Apache-2.0
//
// The terminal: shows a TopModel and reads keys until the user quits. ncurses does it; screen.cc alone includes it.
#pragma once

#include <chrono>
#include <functional>

#include "base/status.h"
#include "tools/top/model.h"

namespace ccom {

// look: called every `interval`. The terminal is as it was before afterwards, also after a signal that ends the
// program, which is raised again then. ConfigError if there is no terminal that can be used.
Status show(TopModel& model, std::chrono::milliseconds interval, const std::function<HostSeen()>& look);

}  // namespace ccom
