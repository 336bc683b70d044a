// SPDX-License-Identifier: Apache-2.0
//
// Communicators of some of the ranks of another one, and what the ranks that are left can do after an error.
#include <algorithm>

#include "api/handles.h"
#include "bootstrap/rendezvous_servers.h"

namespace ccom {
namespace {

// Of a part: what the start of the whole has settled stays.
Result<CommConfig> resolve_part(const ccomConfig_t* of_caller, const CommConfig& whole) {
  CCOM_TRY_ASSIGN(CommConfig config, settings_of(of_caller, whole));
  const auto differs = [](const char* field) {
    return error(Code::InvalidArgument, "config.%s differs from that of the communicator that is split", field)
        .with_cure("leave it out: it is inherited");
  };
  if (config.topology != whole.topology) return differs("topology");
  if (config.transports != whole.transports) return differs("transport");
  if (config.ifname != whole.ifname) return differs("ifname");
  if (config.host_id != whole.host_id) return differs("hostId");
  return config;
}

Result<std::vector<Rank>> check_members(const Communicator& whole, const int* ranks, int nranks) {
  if (ranks == nullptr) return error(Code::InvalidArgument, "ranks is NULL");
  if (nranks < 1 || nranks > whole.nranks())
    return error(Code::InvalidArgument, "nranks is %d; it must be within 1..%d", nranks, whole.nranks());
  std::vector<Rank> members(ranks, ranks + nranks), sorted = members;
  std::ranges::sort(sorted);
  if (sorted.front() < 0 || sorted.back() >= whole.nranks())
    return error(Code::InvalidArgument, "ranks contains %d; ranks are within 0..%d",
                 sorted.front() < 0 ? sorted.front() : sorted.back(), whole.nranks() - 1);
  if (const auto twice = std::ranges::adjacent_find(sorted); twice != sorted.end())
    return error(Code::InvalidArgument, "ranks contains rank %d more than once", *twice);
  if (!std::ranges::binary_search(sorted, whole.rank()))
    return error(Code::InvalidArgument, "ranks does not contain the calling rank %d", whole.rank())
        .with_cure("call it on the ranks of the group alone");
  return members;
}

Result<std::vector<Rank>> check_excluded(const Communicator& whole, const int* ranks, int nranks) {
  if (nranks < 0 || (ranks == nullptr && nranks > 0))
    return error(Code::InvalidArgument, "excludeRanksList is NULL or its length is negative");
  std::vector<Rank> excluded(ranks, ranks + nranks);
  for (const Rank rank : excluded) {
    if (rank < 0 || rank >= whole.nranks())
      return error(Code::InvalidArgument, "excludeRanksList contains %d; ranks are within 0..%d", rank,
                   whole.nranks() - 1);
    if (rank == whole.rank())
      return error(Code::InvalidArgument, "excludeRanksList contains the calling rank %d", rank)
          .with_cure("call it on the ranks alone that are to be left");
  }
  return excluded;
}

using Made = Result<std::unique_ptr<Communicator>>;
using MakePart = std::function<Made(Communicator& whole, Communicator::Ticket ticket, const CommConfig& settings)>;

// A ticket of now, for a call that runs later: std::function wants copies.
std::function<Made(const CommConfig&)> in_place(ccomComm_t comm, const MakePart& make) {
  Communicator* const whole = comm->communicator.get();
  auto ticket = std::make_shared<Communicator::Ticket>(whole->take_ticket());
  return [whole, make, ticket](const CommConfig& settings) { return make(*whole, std::move(*ticket), settings); };
}

// Now, or at the end of the group that is open in this thread, in the order of the calls; or, where the settings say
// so, in a thread of its own.
Status make_part(ccomComm_t* out, ccomComm_t comm, const CommConfig& settings, const MakePart& make) {
  const auto prepare = [=]() -> std::function<Status()> {
    return [out, settings, made = in_place(comm, make)] { return make_handle(out, settings, made); };
  };
  if (!group_is_open() || !settings.blocking) return prepare()();
  add_init_to_group([prepare]() -> Work { return [run = prepare()] { return run(); }; });
  return {};
}

}  // namespace
}  // namespace ccom

using namespace ccom;  // NOLINT(google-build-using-namespace): the C functions below are its border

ccomResult_t ccomCommSplit(ccomComm_t comm, int color, int key, ccomComm_t* newcomm, const ccomConfig_t* config) {
  return queried("ccomCommSplit", [&]() -> Status {
    if (newcomm == nullptr) return error(Code::InvalidArgument, "newcomm is NULL");
    CCOM_TRY(check_handle(comm));
    *newcomm = nullptr;
    if (color < 0 && color != CCOM_SPLIT_NOCOLOR)
      return error(Code::InvalidArgument, "color is %d; it must be 0 or more, or CCOM_SPLIT_NOCOLOR", color);
    CCOM_TRY_ASSIGN(const CommConfig settings, resolve_part(config, comm->communicator->config()));
    const MakePart make = [color, key](Communicator& whole, Communicator::Ticket ticket, const CommConfig& resolved) {
      return whole.split(std::move(ticket), {color, key, resolved});
    };
    if (color != CCOM_SPLIT_NOCOLOR || settings.blocking) return make_part(newcomm, comm, settings, make);
    // No handle will say when it is over; this one waits for it.
    const Lock lock(comm->splits_mutex);
    comm->splits.remove_if([](const Background& split) { return !split.is_running(); });
    CCOM_TRY(comm->splits.emplace_back().run([made = in_place(comm, make), settings]() -> Status {
      const auto none = made(settings);
      return none ? Status() : none.error();
    }));
    return error(Code::InProgress, "the split is under way");
  });
}

ccomResult_t ccomCommCreateGroup(ccomComm_t comm, const int* ranks, int nranks, ccomComm_t* newcomm,
                                 const ccomConfig_t* config) {
  return queried("ccomCommCreateGroup", [&]() -> Status {
    if (newcomm == nullptr) return error(Code::InvalidArgument, "newcomm is NULL");
    CCOM_TRY(check_handle(comm));
    *newcomm = nullptr;
    CCOM_TRY_ASSIGN(const std::vector<Rank> members, check_members(*comm->communicator, ranks, nranks));
    CCOM_TRY_ASSIGN(const CommConfig settings, resolve_part(config, comm->communicator->config()));
    return make_part(newcomm, comm, settings,
                     [members](Communicator& whole, Communicator::Ticket ticket, const CommConfig& resolved) {
                       return whole.create_group(std::move(ticket), members, resolved);
                     });
  });
}

ccomResult_t ccomCommRevoke(ccomComm_t comm, int revokeFlags) {
  return guarded("ccomCommRevoke", [&]() -> Status {
    CCOM_TRY(check_handle(comm));
    if (revokeFlags != 0) return error(Code::InvalidArgument, "revokeFlags is %d; it must be 0", revokeFlags);
    comm->communicator->revoke();
    return {};
  });
}

ccomResult_t ccomCommAgree(ccomComm_t comm, int* flags, int* lostRanks, int* lostCount) {
  return guarded("ccomCommAgree", [&]() -> Status {
    CCOM_TRY(check_handle(comm));
    if (flags == nullptr) return error(Code::InvalidArgument, "flags is NULL");
    if ((lostRanks == nullptr) != (lostCount == nullptr))
      return error(Code::InvalidArgument, "one of lostRanks and lostCount is NULL");
    Communicator& communicator = *comm->communicator;
    CCOM_TRY_ASSIGN(const Communicator::Agreed agreed,
                    communicator.agree_on(communicator.take_ticket(), static_cast<uint32_t>(*flags)));
    *flags = static_cast<int>(static_cast<uint32_t>(agreed.flags));
    if (lostRanks == nullptr) return {};
    std::ranges::copy(agreed.lost, lostRanks);
    *lostCount = static_cast<int>(agreed.lost.size());
    return {};
  });
}

ccomResult_t ccomCommShrink(ccomComm_t comm, const int* excludeRanksList, int excludeRanksCount, ccomComm_t* newcomm,
                            const ccomConfig_t* config, int shrinkFlags) {
  return queried("ccomCommShrink", [&]() -> Status {
    if (newcomm == nullptr) return error(Code::InvalidArgument, "newcomm is NULL");
    CCOM_TRY(check_handle(comm));
    *newcomm = nullptr;
    if (shrinkFlags != CCOM_SHRINK_DEFAULT && shrinkFlags != CCOM_SHRINK_ABORT)
      return error(Code::InvalidArgument, "shrinkFlags is %d; it is CCOM_SHRINK_DEFAULT or CCOM_SHRINK_ABORT",
                   shrinkFlags);
    CCOM_TRY_ASSIGN(const std::vector<Rank> excluded,
                    check_excluded(*comm->communicator, excludeRanksList, excludeRanksCount));
    CCOM_TRY_ASSIGN(const CommConfig settings, resolve_part(config, comm->communicator->config()));
    if (shrinkFlags == CCOM_SHRINK_ABORT) comm->communicator->revoke();
    return make_part(newcomm, comm, settings,
                     [excluded](Communicator& whole, Communicator::Ticket ticket, const CommConfig& resolved) {
                       return whole.shrink(std::move(ticket), excluded, resolved);
                     });
  });
}

ccomResult_t ccomCommGetUniqueId(ccomComm_t comm, ccomUniqueId* id) {
  return guarded("ccomCommGetUniqueId", [&]() -> Status {
    if (id == nullptr) return error(Code::InvalidArgument, "id is NULL");
    CCOM_TRY(check_handle(comm));
    const CommConfig& config = comm->communicator->config();
    CCOM_TRY_ASSIGN(const UniqueId made,
                    create_unique_id(config.ifname, config.ports, Deadline::after_ms(config.init_timeout_ms)));
    return pack_id(made, id);
  });
}

ccomResult_t ccomCommGrow(ccomComm_t comm, int nRanks, const ccomUniqueId* id, int rank, ccomComm_t* newcomm,
                          const ccomConfig_t* config) {
  if (comm == nullptr && id != nullptr) return ccomCommInitRankConfig(newcomm, nRanks, *id, rank, config);
  return queried("ccomCommGrow", [&]() -> Status {
    if (newcomm == nullptr) return error(Code::InvalidArgument, "newcomm is NULL");
    if (comm == nullptr) return error(Code::InvalidArgument, "comm and id are NULL; a new rank gives the id");
    CCOM_TRY(check_handle(comm));
    *newcomm = nullptr;
    if (rank != -1) return error(Code::InvalidArgument, "rank is %d; ranks of comm give -1 and keep theirs", rank);
    if (nRanks <= comm->communicator->nranks())
      return error(Code::InvalidArgument, "nRanks is %d; the communicator has %d already", nRanks,
                   comm->communicator->nranks());
    CCOM_TRY_ASSIGN(const CommConfig settings, resolve_part(config, comm->communicator->config()));
    std::optional<UniqueId> given;
    if (id != nullptr) {
      CCOM_TRY_ASSIGN(given, unpack_id(*id));
    }
    return make_part(newcomm, comm, settings,
                     [nRanks, given](Communicator& whole, Communicator::Ticket ticket, const CommConfig& resolved) {
                       return whole.grow(std::move(ticket), nRanks, given, resolved);
                     });
  });
}
