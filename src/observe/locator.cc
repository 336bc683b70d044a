// SPDX-License-Identifier: Apache-2.0
#include "observe/locator.h"

#include <array>
#include <chrono>
#include <condition_variable>
#include <thread>

#include "base/fork.h"
#include "base/mutex.h"
#include "base/thread.h"
#include "base/time.h"

namespace ccom {
namespace {

struct Locator {
  Mutex mutex;
  std::condition_variable has_run;
  LocatorFunction function CCOM_GUARDED_BY(mutex) = nullptr;
  void* user CCOM_GUARDED_BY(mutex) = nullptr;
  bool is_running CCOM_GUARDED_BY(mutex) = false;
  Located last CCOM_GUARDED_BY(mutex);
};
Locator& locator() {
  static constinit PerProcess<Locator> instance;
  return instance.get();
}

void run(Locator& of, LocatorFunction function, void* user, int64_t began_ns) {
  std::array<char, 256> text{};
  function(text.data(), text.size(), user);
  text.back() = '\0';
  const Lock lock(of.mutex);
  try {
    of.last = {text.data(), began_ns};
  } catch (const std::bad_alloc&) {
  }
  of.is_running = false;
  of.has_run.notify_all();
}

}  // namespace

void set_locator(LocatorFunction function, void* user) {
  constexpr std::chrono::seconds kPatience(1);
  Locator& mine = locator();
  Lock lock(mine.mutex);
  mine.function = nullptr;  // nobody begins meanwhile
  const Deadline deadline = Deadline::after(kPatience);
  while (mine.is_running && !deadline.passed()) lock.wait_until(mine.has_run, deadline.when());
  mine.function = function;
  mine.user = user;
  mine.last = {};
}

bool has_locator() {
  Locator& mine = locator();
  const Lock lock(mine.mutex);
  return mine.function != nullptr;
}

std::optional<Located> locate_since(int64_t since_ns) {
  Locator& mine = locator();
  const Lock lock(mine.mutex);
  if (mine.function == nullptr) return std::nullopt;
  if (mine.last.at_ns >= since_ns) return mine.last;
  if (mine.is_running) return std::nullopt;
  std::thread thread;
  const int refused = start_thread(thread, "ccom-locator", [&mine, function = mine.function, user = mine.user] {
    run(mine, function, user, monotonic_ns());
  });
  if (refused != 0) return std::nullopt;
  mine.is_running = true;
  thread.detach();
  return std::nullopt;
}

}  // namespace ccom
