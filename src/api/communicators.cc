// SPDX-License-Identifier: Apache-2.0
//
// Creation, destruction and properties of communicators.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <numeric>
#include <thread>

#include "api/handles.h"
#include "api/structs.h"
#include "base/fork.h"
#include "base/log_writer.h"
#include "base/options.h"
#include "bootstrap/job_secret.h"
#include "bootstrap/launch.h"
#include "bootstrap/local_rendezvous.h"
#include "bootstrap/rendezvous_servers.h"
#include "bootstrap/url.h"

namespace ccom {
namespace {

// Config fields that are set take precedence over the environment.
Result<CommConfig> resolve(const ccomConfig_t* of_caller) {
  CCOM_TRY_ASSIGN(CommConfig config, CommConfig::from_environment());
  return settings_of(of_caller, std::move(config));
}

Status check_ranks(int nranks, int rank) {
  if (nranks < 1) return error(Code::InvalidArgument, "nranks is %d; it must be at least 1", nranks);
  if (rank < 0 || rank >= nranks)
    return error(Code::InvalidArgument, "rank is %d; it must be within 0..%d", rank, nranks - 1);
  return {};
}

// Where the user has set CCOM_SECRET, the bytes of an id hold its secret encrypted by that one, so that they are
// worthless to others who see them on their way.
Status mask_secret(UniqueId& id) {
  CCOM_TRY_ASSIGN(const std::optional<Secret> of_user, job_secret(id.salt));
  if (!of_user) return {};
  id = masked(std::move(id), *of_user, "ccom unique id mask");
  return {};
}

}  // namespace

Result<UniqueId> unpack_id(const ccomUniqueId& id) {
  CCOM_TRY_ASSIGN(UniqueId found, unpack(std::span<const char, UniqueId::kBytes>(id.internal)));
  CCOM_TRY(mask_secret(found));
  return found;
}

// One salt for all ids that a process makes: to derive a key takes as long as a start.
Status pack_id(UniqueId id, ccomUniqueId* out) {
  static constinit MadeOnce<uint64_t> salt;
  if (id.salt == 0) id.salt = salt.get(random_u64);
  CCOM_TRY(mask_secret(id));
  CCOM_TRY_ASSIGN(const UniqueId::Packed packed, pack(id));
  static_assert(sizeof out->internal == sizeof packed);
  std::memcpy(out->internal, packed.data(), packed.size());
  return {};
}

}  // namespace ccom

using namespace ccom;  // NOLINT(google-build-using-namespace): the C functions below are its border

ccomResult_t ccomGetUniqueId(ccomUniqueId* id) {
  return guarded("ccomGetUniqueId", [&]() -> Status {
    if (id == nullptr) return error(Code::InvalidArgument, "id is NULL");
    CCOM_TRY_ASSIGN(const CommConfig config, CommConfig::from_environment());
    CCOM_TRY_ASSIGN(const UniqueId made,
                    create_unique_id(config.ifname, config.ports, Deadline::after_ms(config.init_timeout_ms)));
    return pack_id(made, id);
  });
}

ccomResult_t ccomUniqueIdFromUrl(const char* url, int nranks, int rank, ccomUniqueId* id) {
  return guarded("ccomUniqueIdFromUrl", [&]() -> Status {
    if (url == nullptr || id == nullptr) return error(Code::InvalidArgument, "url or id is NULL");
    CCOM_TRY(check_ranks(nranks, rank));
    CCOM_TRY_ASSIGN(const CommConfig config, CommConfig::from_environment());
    const Deadline deadline = Deadline::after_ms(config.init_timeout_ms);
    const MakeId make = [&] { return create_unique_id(config.ifname, config.ports, deadline); };
    CCOM_TRY_ASSIGN(const UniqueId found, unique_id_from_url(url, nranks, rank, deadline, make));
    return pack_id(found, id);
  });
}

ccomResult_t ccomGetLaunch(int* rank, int* nranks, int* localRank, int* localNRanks) {
  return guarded("ccomGetLaunch", [&]() -> Status {
    if (rank == nullptr || nranks == nullptr) return error(Code::InvalidArgument, "rank or nranks is NULL");
    CCOM_TRY_ASSIGN(const Launch launch, read_launch(process_environment));
    *rank = launch.rank;
    *nranks = launch.nranks;
    if (localRank != nullptr) *localRank = launch.local_rank;
    if (localNRanks != nullptr) *localNRanks = launch.local_nranks;
    return {};
  });
}

ccomResult_t ccomCommInitRank(ccomComm_t* comm, int nranks, ccomUniqueId id, int rank) {
  return ccomCommInitRankConfig(comm, nranks, id, rank, nullptr);
}

ccomResult_t ccomCommInitRankConfig(ccomComm_t* comm, int nranks, ccomUniqueId id, int rank,
                                    const ccomConfig_t* config) {
  return queried("ccomCommInitRank", [&]() -> Status {
    if (comm == nullptr) return error(Code::InvalidArgument, "comm is NULL");
    *comm = nullptr;
    CCOM_TRY(check_ranks(nranks, rank));
    CCOM_TRY_ASSIGN(const CommConfig resolved, resolve(config));
    CCOM_TRY_ASSIGN(const UniqueId unpacked, unpack_id(id));
    const std::function<Status()> init = [=] {
      return make_handle(comm, resolved, [=](const CommConfig& settings) {
        return Communicator::join(unpacked, nranks, rank, settings, Deadline::after_ms(settings.init_timeout_ms),
                                  settings.interrupted);
      });
    };
    if (!group_is_open() || !resolved.blocking) return init();
    add_init_to_group([init]() -> Work { return [init = init] { return init(); }; });
    return {};
  });
}

ccomResult_t ccomCommInitAll(ccomComm_t* comms, int nlocal, const ccomConfig_t* config) {
  return guarded("ccomCommInitAll", [&]() -> Status {
    if (comms == nullptr) return error(Code::InvalidArgument, "comms is NULL");
    if (nlocal < 1) return error(Code::InvalidArgument, "nlocal is %d; it must be at least 1", nlocal);
    std::fill_n(comms, nlocal, nullptr);
    CCOM_TRY_ASSIGN(const CommConfig resolved, resolve(config));
    if (!resolved.blocking)
      return error(Code::InvalidArgument, "config.blocking is 0; all ranks of this call start before it returns");
    const std::shared_ptr<LocalHub> hub = LocalHub::create();
    const uint64_t number = random_u64();
    const Secret secret = Secret::random();
    const Deadline deadline = Deadline::after_ms(resolved.init_timeout_ms);
    std::vector<Work> starts;
    for (int rank = 0; rank < nlocal; ++rank) {
      // Now, so that one that gets no thread has left, and the others do not wait for it.
      CCOM_TRY_ASSIGN(std::unique_ptr<Rendezvous> joined, hub->join(nlocal, rank));
      starts.push_back([&, rank, rendezvous = std::move(joined)] {
        return make_handle(&comms[rank], resolved, [&](const CommConfig& settings) {
          return Communicator::create({rank, nlocal, number, secret}, settings, *rendezvous, deadline);
        });
      });
    }
    Status status = run_in_threads(std::move(starts));
    if (status.is_ok()) return {};
    for (int rank = 0; rank < nlocal; ++rank) {
      delete comms[rank];
      comms[rank] = nullptr;
    }
    return status;
  });
}

ccomResult_t ccomCommFinalize(ccomComm_t comm) {
  return queried("ccomCommFinalize", [&]() -> Status {
    CCOM_TRY(check_handle(comm));
    if (comm->communicator->config().blocking) return comm->communicator->finalize();
    CCOM_TRY(comm->background.run([comm] { return comm->communicator->finalize(); }));
    return error(Code::InProgress, "the end of the communicator is under way");
  });
}

ccomResult_t ccomCommDestroy(ccomComm_t comm) {
  return guarded("ccomCommDestroy", [&]() -> Status {
    if (comm == nullptr) return {};
    CCOM_TRY(check_alive(comm));
    CCOM_TRY(check_no_calls_in_group(comm, nullptr));
    if (Messages::is_within_done()) {
      return error(Code::InvalidUsage, "the communicator cannot be destroyed by a message's callback")
          .with_cure("destroy it in another thread, after the callback has returned");
    }
    comm->await_background();
    Communicator::retire(std::move(comm->communicator));
    delete comm;
    flush_log();  // processes of Python's multiprocessing end without destructors
    return {};
  });
}

ccomResult_t ccomCommAbort(ccomComm_t comm) {
  return guarded("ccomCommAbort", [&]() -> Status {
    CCOM_TRY(check_alive(comm));
    if (comm->is_starting.load()) {
      comm->background.cancel();
    } else if (comm->communicator != nullptr) {
      comm->communicator->abort();
    }
    return {};
  });
}

ccomResult_t ccomCommSetTimeout(ccomComm_t comm, int64_t timeoutMs) {
  return guarded("ccomCommSetTimeout", [&]() -> Status {
    CCOM_TRY(check_handle(comm));
    if (timeoutMs <= 0) {
      return error(Code::InvalidArgument, "timeoutMs is %lld; it must be positive", static_cast<long long>(timeoutMs));
    }
    comm->communicator->set_timeout_ms(timeoutMs);
    return {};
  });
}

ccomResult_t ccomCommGetAsyncError(ccomComm_t comm, ccomResult_t* result) {
  return guarded("ccomCommGetAsyncError", [&]() -> Status {
    if (result == nullptr) return error(Code::InvalidArgument, "result is NULL");
    CCOM_TRY(check_alive(comm));
    *result = static_cast<ccomResult_t>(state_of(comm).code());
    return {};
  });
}

ccomResult_t ccomCommCount(ccomComm_t comm, int* count) {
  return guarded("ccomCommCount", [&]() -> Status {
    if (count == nullptr) return error(Code::InvalidArgument, "count is NULL");
    CCOM_TRY(check_handle(comm));
    *count = comm->communicator->nranks();
    return {};
  });
}

ccomResult_t ccomCommUserRank(ccomComm_t comm, int* rank) {
  return guarded("ccomCommUserRank", [&]() -> Status {
    if (rank == nullptr) return error(Code::InvalidArgument, "rank is NULL");
    CCOM_TRY(check_handle(comm));
    *rank = comm->communicator->rank();
    return {};
  });
}

ccomResult_t ccomCommGetInfo(ccomComm_t comm, ccomCommInfo_t* info) {
  return guarded("ccomCommGetInfo", [&]() -> Status {
    CCOM_TRY(check_struct(info, {"info", "CCOM_COMM_INFO_INIT"}));
    CCOM_TRY(check_handle(comm));
    ccomCommInfo_t known = CCOM_COMM_INFO_INIT;
    Communicator& communicator = *comm->communicator;
    const Place& place = communicator.topology().ranks[static_cast<size_t>(communicator.rank())];
    const Host& host = communicator.topology().hosts[static_cast<size_t>(place.host)];
    known.rank = communicator.rank();
    known.nranks = communicator.nranks();
    known.nhosts = static_cast<int>(communicator.topology().hosts.size());
    known.localRank = place.local;
    known.localNRanks = static_cast<int>(communicator.topology().ranks_of(place.host).size());
    std::snprintf(known.transports, sizeof known.transports, "%s", communicator.transport_names().c_str());
    std::snprintf(known.topology, sizeof known.topology, "%s", host.imposed ? host.imposed->name.c_str() : "host");
    const Communicator::Usage usage = communicator.usage();
    known.bytesSent = std::accumulate(usage.bytes_sent_to.begin(), usage.bytes_sent_to.end(), uint64_t{0});
    known.memoryBytes = usage.memory_bytes;
    known.sequence = communicator.sequence();
    write_struct(known, info);
    return {};
  });
}

ccomResult_t ccomCommGetParentRanks(ccomComm_t comm, int* ranks) {
  return guarded("ccomCommGetParentRanks", [&]() -> Status {
    if (ranks == nullptr) return error(Code::InvalidArgument, "ranks is NULL");
    CCOM_TRY(check_handle(comm));
    std::ranges::copy(comm->communicator->origins(), ranks);
    return {};
  });
}

ccomResult_t ccomCommGetBytesSent(ccomComm_t comm, int peer, uint64_t* bytes) {
  return guarded("ccomCommGetBytesSent", [&]() -> Status {
    if (bytes == nullptr) return error(Code::InvalidArgument, "bytes is NULL");
    CCOM_TRY(check_handle(comm));
    CCOM_TRY(check_ranks(comm->communicator->nranks(), peer));
    *bytes = comm->communicator->usage().bytes_sent_to.at(static_cast<size_t>(peer));
    return {};
  });
}
