// SPDX-License-Identifier: Apache-2.0
//
// Functions that torch (abort hooks 2.14, completion hooks 2.15) has called when operations end. Older versions lack
// their types.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <torch/csrc/distributed/c10d/Work.hpp>

namespace c10d {
struct CompletionHookArgs;  // torch's own, where it has one
}

namespace ccom_torch {

// Thread-safe. A hook may be called once more by another thread while it is taken away, and must not call back.
template <typename... Arguments>
class Hooks {
 public:
  using Hook = std::function<void(Arguments...)>;

  void add(int64_t id, Hook hook) {
    std::lock_guard lock(mutex_);
    TORCH_CHECK(hooks_.emplace(id, std::move(hook)).second, "ccom: there is a hook with id ", id, " already");
  }
  void remove(int64_t id) {
    std::lock_guard lock(mutex_);
    TORCH_CHECK(hooks_.erase(id) > 0, "ccom: there is no hook with id ", id);
  }
  // What hooks throw is told and has no other effect.
  void call(Arguments... arguments) {
    std::map<int64_t, Hook> hooks;
    {
      std::lock_guard lock(mutex_);
      if (hooks_.empty()) return;
      hooks = hooks_;
    }
    for (const auto& [id, hook] : hooks) {
      try {
        hook(arguments...);
      } catch (const std::exception& error) {
        TORCH_WARN("ccom: hook ", id, " failed: ", error.what());
      }
    }
  }

 private:
  std::mutex mutex_;
  std::map<int64_t, Hook> hooks_;
};

using AbortHooks = Hooks<>;
using CompletionHooks = Hooks<const c10d::CompletionHookArgs&>;

// Tells of one operation that has succeeded.
template <typename Told = c10d::CompletionHookArgs>
void tell_completed(CompletionHooks& hooks, uint64_t key, float milliseconds) {
  if constexpr (requires { sizeof(Told); }) hooks.call(Told{key, milliseconds});
}

}  // namespace ccom_torch
