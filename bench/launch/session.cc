// SPDX-License-Identifier: Apache-2.0
#include "bench/launch/session.h"

#include <unistd.h>

#include <cstdio>
#include <exception>
#include <new>
#include <utility>
#include <vector>

namespace ccom::launch {
namespace {

// The ranks of one process. Shared state is guarded by `mutex`.
struct ThreadTeam {
  std::mutex mutex;
  std::vector<ccomComm_t> comms;  // NULL for a rank without one.
  std::vector<Outcome> outcomes;

  void put(int rank, ccomComm_t comm) {
    const std::lock_guard lock(mutex);
    comms[static_cast<size_t>(rank)] = comm;
  }
  void finish(int rank, Outcome outcome) {
    const std::lock_guard lock(mutex);
    if (!outcome.ok() && !outcome.everywhere) {
      for (ccomComm_t comm : comms) {
        if (comm != nullptr) ccomCommAbort(comm);
      }
    }
    outcomes[static_cast<size_t>(rank)] = std::move(outcome);
  }
};

Outcome guarded(const RankBody& body, Place place, ccomComm_t comm) {
  try {
    return body(place, comm);
  } catch (const std::bad_alloc&) {
    return failure(ExitCode::Usage, "out of memory");
  } catch (const std::exception& thrown) {
    return failure(ExitCode::Usage, "%s", thrown.what());
  }
}

// Among equally informative outcomes the first is returned: later ones are usually consequences.
Outcome most_telling(std::vector<Outcome> outcomes) {
  Outcome result;
  for (size_t rank = 0; rank < outcomes.size(); ++rank) {
    Outcome& outcome = outcomes[rank];
    if (outcome.ok()) continue;
    if (!outcome.text.empty()) outcome.text = "rank " + std::to_string(rank) + ": " + outcome.text;
    if (more_telling(result.code, outcome.code) != result.code) std::swap(result, outcome);
    if (!outcome.text.empty()) std::fprintf(stderr, "%s\n", outcome.text.c_str());
  }
  return result;
}

}  // namespace

Outcome launched_place(std::optional<Place>* place) {
  Place found;
  const ccomResult_t result = ccomGetLaunch(&found.rank, &found.ranks, nullptr, nullptr);
  place->reset();
  if (result == ccomInvalidUsage) return {};
  CCOM_LAUNCH_TRY(outcome_of(result, nullptr, "read the launcher's variables"));
  *place = found;
  return {};
}

Outcome make_comm(const SessionConfig& config, Place place, const ccomUniqueId& id, Comm* comm) {
  ccomConfig_t own = config.common;
  const std::string host_id = config.host_id ? config.host_id(place.rank) : "";
  if (!host_id.empty()) own.hostId = host_id.c_str();
  ccomComm_t handle = nullptr;
  const ccomResult_t result = ccomCommInitRankConfig(&handle, place.ranks, id, place.rank, &own);
  comm->reset(handle);
  return outcome_of(result, nullptr, "start of the communicator");
}

Outcome make_sibling(const SessionConfig& config, Place place, ccomComm_t parent, Comm* comm) {
  ccomUniqueId id{};
  if (place.rank == 0) CCOM_LAUNCH_TRY(outcome_of(ccomGetUniqueId(&id), nullptr, "create a unique id"));
  CCOM_LAUNCH_TRY(outcome_of(ccomBroadcast(&id, &id, sizeof(id), ccomUint8, 0, parent, nullptr), parent,
                             "broadcast of a unique id"));
  return make_comm(config, place, id, comm);
}

Outcome run_as_process(Place place, const SessionConfig& config, const RankBody& body) {
  ccomUniqueId id{};
  CCOM_LAUNCH_TRY(
      outcome_of(ccomUniqueIdFromUrl("env://", place.ranks, place.rank, &id), nullptr, "find the other ranks"));
  Comm comm;
  CCOM_LAUNCH_TRY(make_comm(config, place, id, &comm));
  return guarded(body, place, comm.get());
}

Outcome run_as_threads(int ranks, const SessionConfig& config, const RankBody& body) {
  ThreadTeam team;
  team.comms.resize(static_cast<size_t>(ranks));
  team.outcomes.resize(static_cast<size_t>(ranks));
  ccomUniqueId id{};
  const bool each_its_own = static_cast<bool>(config.host_id);
  if (each_its_own) {
    CCOM_LAUNCH_TRY(outcome_of(ccomGetUniqueId(&id), nullptr, "create a unique id"));
  } else {
    CCOM_LAUNCH_TRY(
        outcome_of(ccomCommInitAll(team.comms.data(), ranks, &config.common), nullptr, "start of the communicators"));
  }
  std::vector<Comm> owned(static_cast<size_t>(ranks));
  for (size_t rank = 0; rank < owned.size(); ++rank) owned[rank].reset(team.comms[rank]);

  const auto run = [&](Place place) -> Outcome {
    Comm& comm = owned[static_cast<size_t>(place.rank)];
    if (each_its_own) CCOM_LAUNCH_TRY(make_comm(config, place, id, &comm));
    team.put(place.rank, comm.get());
    return guarded(body, place, comm.get());
  };
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&run, &team, rank, ranks] { team.finish(rank, run({.rank = rank, .ranks = ranks})); });
  }
  for (std::thread& thread : threads) thread.join();
  return most_telling(std::move(team.outcomes));
}

Watchdog::Watchdog(std::chrono::milliseconds limit)
    : thread_([this, limit] {
        std::unique_lock lock(mutex_);
        if (changed_.wait_for(lock, limit, [this] { return done_; })) return;
        std::fprintf(stderr, "ccom: timeout after %lld s\n", static_cast<long long>(limit.count() / 1000));
        ::_exit(static_cast<int>(ExitCode::Timeout));
      }) {}

Watchdog::~Watchdog() {
  {
    const std::lock_guard lock(mutex_);
    done_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

}  // namespace ccom::launch
