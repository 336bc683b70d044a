// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor/providers.h"

#include <dlfcn.h>
#include <rdma/fabric.h>

#include <algorithm>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>

namespace ccom::doctor {
namespace {

template <typename Function>
Function* find(void* library, const char* name) {
  return reinterpret_cast<Function*>(::dlsym(library, name));
}

Providers ask_libfabric() {
  void* library = ::dlopen("libfabric.so.1", RTLD_NOW | RTLD_LOCAL);  // stays: its providers do not unload well
  if (library == nullptr) return {.failure = "libfabric is not installed"};
  auto* const version = find<decltype(::fi_version)>(library, "fi_version");
  auto* const getinfo = find<decltype(::fi_getinfo)>(library, "fi_getinfo");
  auto* const freeinfo = find<decltype(::fi_freeinfo)>(library, "fi_freeinfo");
  if (version == nullptr || getinfo == nullptr || freeinfo == nullptr) return {.failure = "libfabric is damaged"};
  Providers found;
  found.version = std::to_string(FI_MAJOR(version())) + "." + std::to_string(FI_MINOR(version()));
  fi_info* list = nullptr;
  const int code = getinfo(FI_VERSION(1, 9), nullptr, nullptr, 0, nullptr, &list);
  if (code != 0) found.failure = "fi_getinfo gives " + std::to_string(code);
  for (const fi_info* info = list; info != nullptr; info = info->next) {
    if (info->fabric_attr == nullptr || info->fabric_attr->prov_name == nullptr) continue;
    const std::string name = info->fabric_attr->prov_name;
    if (std::ranges::find(found.names, name) == found.names.end()) found.names.push_back(name);
  }
  if (list != nullptr) freeinfo(list);
  std::ranges::sort(found.names);
  return found;
}

// Shared by the caller and the thread that asks, which may be the last to use it.
struct Question {
  std::mutex mutex;
  std::condition_variable changed;
  bool is_answered = false;
  Providers answer;
};

}  // namespace

Providers list_providers(std::chrono::milliseconds limit) {
  const auto question = std::make_shared<Question>();
  std::thread asker;
  try {
    asker = std::thread([question] {
      Providers answer = ask_libfabric();
      const std::lock_guard lock(question->mutex);
      question->answer = std::move(answer);
      question->is_answered = true;
      question->changed.notify_all();
    });
  } catch (const std::system_error& failure) {
    return {.failure = failure.what()};
  }
  std::unique_lock lock(question->mutex);
  const bool in_time = question->changed.wait_for(lock, limit, [&question] { return question->is_answered; });
  Providers answer = question->answer;
  lock.unlock();
  if (in_time) {
    asker.join();
    return answer;
  }
  asker.detach();
  return {.failure = "libfabric did not answer within " + std::to_string(limit.count()) + " ms"};
}

}  // namespace ccom::doctor
