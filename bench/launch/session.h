// SPDX-License-Identifier: Apache-2.0
//
// From a rank's place to a communicator, in the same way for ranks that are processes (ours, torchrun's, mpirun's,
// srun's) and for ranks that are threads of one process.
#pragma once

#include <ccom/ccom.h>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "bench/launch/outcome.h"

namespace ccom::launch {

struct Place {
  int rank = 0;
  int ranks = 1;
};

// The place that the launcher's environment gives this process; nullopt without a launcher. Usage if it is invalid: a
// rank that mistook itself for a standalone program would silently do the wrong thing.
Outcome launched_place(std::optional<Place>* place);

struct CommDeleter {
  void operator()(ccomComm_t comm) const { ccomCommDestroy(comm); }
};
using Comm = std::unique_ptr<ccomComm, CommDeleter>;

struct SessionConfig {
  ccomConfig_t common = CCOM_CONFIG_INIT;          // Its strings outlive the session.
  std::function<std::string(int rank)> host_id{};  // Empty: as in `common` on all ranks.
};

Outcome make_comm(const SessionConfig& config, Place place, const ccomUniqueId& id, Comm* comm);
// Another communicator over the ranks of `parent`, whose rank 0 creates the id and broadcasts it. Collective.
Outcome make_sibling(const SessionConfig& config, Place place, ccomComm_t parent, Comm* comm);

// Called once per rank, in that rank's thread. `comm` is valid until it returns.
using RankBody = std::function<Outcome(Place place, ccomComm_t comm)>;

// This process is one rank; the others are found through the environment ("env://").
Outcome run_as_process(Place place, const SessionConfig& config, const RankBody& body);
// All ranks are threads of this process. If one fails, the communicators of the others are aborted; the most
// informative outcome is returned, the other texts are printed to stderr.
Outcome run_as_threads(int ranks, const SessionConfig& config, const RankBody& body);

// Ends the process with ExitCode::Timeout unless destroyed before: the timeout for ranks without a parent of ours.
class Watchdog {
 public:
  explicit Watchdog(std::chrono::milliseconds limit);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool done_ = false;  // Guarded by mutex_.
  std::thread thread_;
};

}  // namespace ccom::launch
