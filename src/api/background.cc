// SPDX-License-Identifier: Apache-2.0
#include "api/background.h"

#include <new>

#include "base/thread.h"

namespace ccom {

Status call_under_way() {
  return error(Code::InvalidUsage, "the communicator is still being started or finalized")
      .with_cure("wait until ccomCommGetAsyncError no longer says ccomInProgress");
}

Status Background::run(std::function<Status()> work) {
  const Lock lock(starting_);  // the work may have ended before thread_ has been written
  if (is_running_.exchange(true, std::memory_order_acquire)) return call_under_way();
  if (thread_.joinable()) thread_.join();
  const int refused = start_thread(thread_, "ccom-background", [this, work = std::move(work)] {
    try {
      result_ = work();
    } catch (const std::bad_alloc&) {
      result_ = out_of_memory();
    } catch (const std::exception& exception) {
      result_ = error(Code::InternalError, "%s", exception.what());
    }
    is_running_.store(false, std::memory_order_release);
  });
  if (refused == 0) return {};
  is_running_.store(false, std::memory_order_release);
  return system_error(refused, "start a thread for a call that does not block");
}

void Background::wait() {
  const Lock lock(starting_);
  if (thread_.joinable()) thread_.join();
}

Interrupted Background::interruption(Interrupted given) const {
  return [cancelled = cancelled_, given = std::move(given)] {
    return cancelled->load(std::memory_order_relaxed) || (given && given());
  };
}

}  // namespace ccom
