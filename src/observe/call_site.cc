// SPDX-License-Identifier: Apache-2.0
#include "observe/call_site.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <unordered_map>

#include "base/fork.h"
#include "base/mutex.h"
#include "base/options.h"
#include "observe/text_table.h"

namespace ccom {
namespace {

// Texts by number, for as long as the process lives. A forked child goes on with those that it has inherited.
constexpr CallSite kUnknown = kMostCallSites;  // it was set, but there is no number for it
constinit std::array<std::atomic<const std::string*>, kMostCallSites> texts{};
constinit std::atomic<uint32_t> sites{1};

struct Numbers {
  Mutex mutex;
  std::unordered_map<const void*, CallSite> by_address CCOM_GUARDED_BY(mutex);
  std::unordered_map<std::string, CallSite> by_text CCOM_GUARDED_BY(mutex);
};
Numbers& numbers() {
  static constinit PerProcess<Numbers> instance;
  return instance.get();
}

// The addresses from which threads called last, each in one word with its number below it: addresses have 48 bits. One
// that has more is looked up each time.
constexpr size_t kAddresses = 512;
constinit std::array<std::atomic<uint64_t>, kAddresses> addresses{};

// What this thread has set; not read, which costs a call in a shared library, before any thread has set something.
constinit thread_local CallSite set_by_thread = 0;

bool is_on() {
  static constinit std::atomic<int> known{-1};
  if (known.load(std::memory_order_relaxed) < 0) known.store(option("CCOM_CALL_SITES") == "0" ? 0 : 1);
  return known.load(std::memory_order_relaxed) == 1;
}

CallSite add(std::string text) {
  const uint32_t number = sites.fetch_add(1, std::memory_order_relaxed);
  if (number >= kMostCallSites) {
    sites.store(kMostCallSites, std::memory_order_relaxed);
    return 0;
  }
  texts[number].store(new std::string(std::move(text)), std::memory_order_release);
  return static_cast<CallSite>(number);
}

std::string path_of(const link_map& module) {
  if (module.l_name != nullptr && module.l_name[0] != '\0') return module.l_name;
  char path[PATH_MAX];
  const ssize_t length = ::readlink("/proc/self/exe", path, sizeof path);
  return length > 0 ? std::string(path, static_cast<size_t>(length)) : "program";
}

// "/path/module+0x1234 symbol": of the call, which ends at the return address. A path that leaves no room for the
// offset loses its folders.
std::string text_of_address(const void* return_address) {
  constexpr size_t kMostPath = TextTable::kTextBytes - 20;
  const auto* const call = static_cast<const char*>(return_address) - 1;
  Dl_info info{};
  link_map* module = nullptr;
  if (::dladdr1(call, &info, reinterpret_cast<void**>(&module), RTLD_DL_LINKMAP) == 0 || module == nullptr) return "";
  std::string path = path_of(*module);
  if (path.size() > kMostPath) path.erase(0, path.rfind('/') + 1);
  if (path.size() > kMostPath) path.resize(kMostPath);
  char offset[32];
  std::snprintf(offset, sizeof offset, "+0x%zx",
                static_cast<size_t>(reinterpret_cast<uintptr_t>(call) - static_cast<uintptr_t>(module->l_addr)));
  return path + offset + (info.dli_sname == nullptr ? "" : std::string(" ") + info.dli_sname);
}

CallSite look_up(const void* return_address) {
  if (!is_on()) return 0;
  Numbers& known = numbers();
  const Lock lock(known.mutex);
  const auto [place, is_new] = known.by_address.try_emplace(return_address, 0);
  if (is_new) place->second = add(text_of_address(return_address));
  return place->second;
}

}  // namespace

constinit std::atomic<bool> internal::is_any_call_site_set{false};

CallSite LastCallSite::look_up(const void* return_address) noexcept {
  site_ = call_site(return_address);
  address_ = is_any_set() ? nullptr : return_address;
  return site_;
}

CallSite call_site(const void* return_address) noexcept {
  if (internal::is_any_call_site_set.load(std::memory_order_relaxed) && set_by_thread != 0)
    return set_by_thread == kUnknown ? CallSite{0} : set_by_thread;
  const auto address = uint64_t{reinterpret_cast<uintptr_t>(return_address)};
  std::atomic<uint64_t>& known = addresses[(address ^ address >> 9) % kAddresses];
  const uint64_t word = known.load(std::memory_order_relaxed);
  if (word >> 16 == address) [[likely]]
    return static_cast<CallSite>(word);
  try {
    const CallSite site = look_up(return_address);
    if (address >> 48 == 0) known.store(address << 16 | site, std::memory_order_relaxed);
    return site;
  } catch (const std::bad_alloc&) {
    return 0;
  }
}

void set_call_site(std::string_view text) noexcept {
  if (text.empty() || (set_by_thread != 0 && text_of(set_by_thread) == text)) {
    if (text.empty()) set_by_thread = 0;
    return;
  }
  set_by_thread = kUnknown;
  internal::is_any_call_site_set.store(true, std::memory_order_relaxed);
  if (!is_on()) return;
  try {
    const std::string shown(text.substr(0, TextTable::kTextBytes));
    Numbers& known = numbers();
    const Lock lock(known.mutex);
    const auto [place, is_new] = known.by_text.try_emplace(shown, 0);
    if (is_new) place->second = add(shown);
    set_by_thread = place->second == 0 ? kUnknown : place->second;
  } catch (const std::bad_alloc&) {
  }
}

std::string_view text_of(CallSite site) noexcept {
  if (site >= kMostCallSites) return "";
  const std::string* const text = texts[site].load(std::memory_order_acquire);
  return text == nullptr ? std::string_view() : *text;
}

}  // namespace ccom
