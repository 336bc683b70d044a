// SPDX-License-Identifier: Apache-2.0
#include "communicator.h"

#include <pybind11/pybind11.h>

#include <algorithm>
#include <cstring>
#include <future>
#include <random>
#include <thread>

#include "types.h"

namespace ccom_torch {
namespace {

using Milliseconds = Communicator::Milliseconds;

// A store may serve several generations of a group: each has its own key. All ranks count in the same way.
std::string key_of_this_time(c10d::Store& store, int rank) {
  return "ccom/id/" + std::to_string(store.add("ccom/times/" + std::to_string(rank), 1));
}

}  // namespace

void forget(c10d::Store& store, const std::string& key) {
  try {
    store.set(key, std::vector<uint8_t>());
    store.deleteKey(key);
  } catch (const std::exception&) {  // the store has gone, or cannot delete
  }
}

Told read(c10d::Store& store, const std::string& key, int rank, Milliseconds timeout, const std::string& name,
          Interrupt& interrupt) {
  try {
    wait_for_key(store, key, timeout, interrupt);
  } catch (const pybind11::error_already_set&) {
    throw;
  } catch (const std::exception& cause) {
    raise("ccom start: rank 0 of group '" + name + "' has not written the communicator's id to the store within " +
          std::to_string(timeout.count()) + " ms (rank " + std::to_string(rank) +
          " waits for it) [ Timed out waiting ]: " + cause.what());
  }
  const std::vector<uint8_t> bytes = store.get(key);
  Told told;
  TORCH_CHECK(bytes.size() == sizeof(told), "ccom start: the store holds ", bytes.size(), " bytes under ", key);
  std::memcpy(&told, bytes.data(), sizeof(told));
  return told;
}

void write(c10d::Store& store, const std::string& key, const Told& told) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(&told);
  store.set(key, std::vector<uint8_t>(bytes, bytes + sizeof(told)));
}

uint64_t new_number() {
  std::random_device device;
  return (uint64_t{device()} << 32 | device()) | 1;
}

void wait_for_key(c10d::Store& store, const std::string& key, Milliseconds timeout, Interrupt& interrupt) {
  const auto end = std::chrono::steady_clock::now() + timeout;
  for (Milliseconds pause(1); !store.check({key}); pause = std::min(2 * pause, 2 * Interrupt::kInterval)) {
    if (interrupt.look()) rethrow(interrupt);
    const auto left = std::chrono::ceil<Milliseconds>(end - std::chrono::steady_clock::now());
    if (left <= Milliseconds(0)) raise("the key is not in the store after " + std::to_string(timeout.count()) + " ms");
    std::this_thread::sleep_for(std::min(pause, left));
  }
}

Communicator::Communicator(c10d::Store& store, int rank, int size, Milliseconds timeout, const std::string& name,
                           const FindWhole& find_whole)
    : timeout_ms_(timeout.count()) {
  const std::string key = key_of_this_time(store, rank);
  std::unique_ptr<Whole> whole;
  Told told;
  if (rank == 0) {
    whole = find_whole(0);
    told.number = new_number();
    if (whole != nullptr) {
      told.whole = whole->communicator.number();
    } else {
      check(ccomGetUniqueId(&told.id), nullptr);
    }
    write(store, key, told);
  } else {
    told = read(store, key, rank, timeout, name, *interrupt_);
    if (told.whole != 0) whole = find_whole(told.whole);
  }
  number_ = told.number;
  const ccomConfig_t config = settings(name);
  try {
    if (told.whole == 0) {
      start_by_id(told.id, rank, size, config);
    } else {
      TORCH_CHECK(whole != nullptr, "ccom start: rank 0 of group '", name, "' makes it a part of one that rank ", rank,
                  " has closed");
      start_part(*whole, config);
    }
  } catch (const CallFailed& failure) {
    rethrow(*interrupt_);
    if (whole != nullptr) rethrow(*whole->communicator.interrupt());
    raise("ccom start of group '" + name + "' (rank " + std::to_string(rank) + " of " + std::to_string(size) +
          "): " + failure.what());
  }
  if (rank == 0) forget(store, key);  // all ranks have joined
}

// For as long as `name` and this object live.
ccomConfig_t Communicator::settings(const std::string& name) const {
  ccomConfig_t config = CCOM_CONFIG_INIT;
  config.commName = name.c_str();
  config.timeoutMs = config.initTimeoutMs = timeout_ms_;
  config.messages = 1;
  config.interrupted = [](void* user) { return static_cast<Interrupt*>(user)->look() ? 1 : 0; };
  config.interruptedUser = interrupt_.get();
  return config;
}

void Communicator::start_by_id(const ccomUniqueId& id, int rank, int size, ccomConfig_t config) {
  const std::string interface = interface_towards_master();
  if (!interface.empty()) config.ifname = interface.c_str();
  check(ccomCommInitRankConfig(&comm_, size, id, rank, &config), nullptr);
}

// On all ranks after the operations issued before, and before those issued after.
void Communicator::start_part(Whole& whole, const ccomConfig_t& config) {
  whole.communicator.run_in_order([&] {
    check(ccomCommCreateGroup(whole.use.comm(), whole.ranks.data(), static_cast<int>(whole.ranks.size()), &comm_,
                              &config),
          nullptr);
  });
}

// In this thread if nothing is queued. Throws what `job` does.
void Communicator::run_in_order(const std::function<void()>& job) {
  if (is_idle()) return job();
  std::promise<void> done;
  post([&] {
    try {
      job();
      done.set_value();
    } catch (...) {
      done.set_exception(std::current_exception());
    }
  });
  done.get_future().get();
}

Communicator::~Communicator() {
  close(Milliseconds(0), [](ccomComm_t) {});
}

Communicator::Use::Use(Communicator& communicator) : communicator_(communicator) {
  communicator.in_use_.fetch_add(1, std::memory_order_seq_cst);
  if (!communicator.closing_.load(std::memory_order_seq_cst)) return;
  communicator.in_use_.fetch_sub(1, std::memory_order_release);
  raise("ccom: " + communicator.why_closed_);
}

void Communicator::witness(const std::vector<std::pair<const void*, size_t>>& data) {
  const Use use(*this);
  run_in_order([&] {
    for (const auto& [bytes, size] : data) check(ccomCommWitness(bytes, size, use.comm()), use.comm());
  });
}

uint64_t Communicator::bytes_sent() {
  const Use use(*this);
  ccomCommInfo_t info = CCOM_COMM_INFO_INIT;
  run_in_order([&] { check(ccomCommGetInfo(use.comm(), &info), use.comm()); });
  return info.bytesSent;
}

Communicator::Use::~Use() { communicator_.in_use_.fetch_sub(1, std::memory_order_release); }

void Communicator::set_timeout(Milliseconds timeout) {
  if (timeout_ms_.exchange(timeout.count(), std::memory_order_relaxed) == timeout.count()) return;
  check(ccomCommSetTimeout(comm_, timeout.count()), comm_);
}

void Communicator::post(std::function<void()> job) {
  const Use use(*this);
  queue_->post(std::move(job));
}

bool Communicator::drain(Milliseconds timeout) {
  const auto until = std::chrono::steady_clock::now() + timeout;
  while (!is_idle()) {
    if (std::chrono::steady_clock::now() >= until) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  return true;
}

void Communicator::abort() {
  std::lock_guard lock(close_mutex_);
  if (comm_ != nullptr) ccomCommAbort(comm_);
}

void Communicator::close(Milliseconds timeout, const std::function<void(ccomComm_t)>& last) {
  if (!closing_.load(std::memory_order_acquire)) drain(timeout);
  closing_.store(true, std::memory_order_seq_cst);
  std::lock_guard lock(close_mutex_);
  if (comm_ == nullptr) return;
  if (!is_idle() || in_use_.load(std::memory_order_seq_cst) > 0) ccomCommAbort(comm_);
  queue_->close();
  while (in_use_.load(std::memory_order_seq_cst) > 0) std::this_thread::yield();
  last(comm_);
  ccomCommDestroy(comm_);
  comm_ = nullptr;
}

ccomResult_t Communicator::error() {
  std::lock_guard lock(close_mutex_);
  ccomResult_t result = ccomSuccess;
  if (comm_ != nullptr) ccomCommGetAsyncError(comm_, &result);
  return result;
}

}  // namespace ccom_torch
