// SPDX-License-Identifier: Apache-2.0
//
// A barrier that names missing ranks. Uses the store, so it works when ranks hang, and leaves the communicator usable.
#include <pybind11/pybind11.h>

#include "process_group.h"
#include "types.h"

namespace ccom_torch {
namespace {

using Clock = std::chrono::steady_clock;

std::chrono::milliseconds left_until(Clock::time_point end) {
  return std::max(std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()),
                  std::chrono::milliseconds(1));
}

bool came(c10d::Store& store, const std::string& key, std::chrono::milliseconds timeout, Interrupt& interrupt) {
  try {
    wait_for_key(store, key, timeout, interrupt);
    return true;
  } catch (const pybind11::error_already_set&) {
    throw;
  } catch (const std::exception&) {
    return false;
  }
}

std::string listed(const std::vector<int>& ranks) {
  std::string text = ranks.size() == 1 ? "Rank " : "Ranks ";
  for (size_t i = 0; i < ranks.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(ranks[i]);
  return text;
}

// Programs look for gloo's words.
std::string arrived(int rank) {
  return "Rank " + std::to_string(rank) +
         " successfully reached monitoredBarrier, but received errors while waiting for send/recv from rank 0: ";
}

}  // namespace

void ProcessGroup::monitoredBarrier(const BarrierOptions& options, bool wait_all_ranks) {
  // Zero is a timeout, as for gloo: rank 0 names at once who is not there yet.
  const Milliseconds timeout = options.timeout.count() < 0 ? options_->timeout : options.timeout;
  const Clock::time_point end = Clock::now() + timeout;
  const std::string prefix = "ccom/monitored/" + std::to_string(monitored_.fetch_add(1)) + "/";
  const std::string verdict = prefix + "verdict";
  if (rank_ != 0) {
    store_->set(prefix + std::to_string(rank_), "here");
    // Rank 0 reports the outcome when its own timeout has passed, so wait a little longer.
    if (!came(*store_, verdict, left_until(end) + std::chrono::seconds(2), *communicator().interrupt())) {
      raise(arrived(rank_) + "it has not answered [ Timed out waiting " + std::to_string(timeout.count()) + " ms ]");
    }
    const std::vector<uint8_t> bytes = store_->get(verdict);
    const std::string text(bytes.begin(), bytes.end());
    if (store_->add(prefix + "read", 1) == size_ - 1) {
      for (int rank = 1; rank < size_; ++rank) store_->deleteKey(prefix + std::to_string(rank));
      store_->deleteKey(verdict);
    }
    if (text != "ok") {
      raise(arrived(rank_) + text);
    }
    return;
  }
  std::vector<int> missing;
  for (int rank = 1; rank < size_; ++rank) {
    if (came(*store_, prefix + std::to_string(rank), left_until(end), *communicator().interrupt())) continue;
    missing.push_back(rank);
    if (!wait_all_ranks) break;
  }
  const std::string text = missing.empty() ? "ok"
                                           : listed(missing) + " failed to pass monitoredBarrier in " +
                                                 std::to_string(timeout.count()) + " ms";
  store_->set(verdict, text);
  if (!missing.empty()) raise("Rank 0 timed out in monitoredBarrier: " + text + " [ Timed out waiting ]");
}

}  // namespace ccom_torch
