// SPDX-License-Identifier: Apache-2.0
//
// Communicators of some of the ranks of another one.
#include <algorithm>

#include "api/handles.h"

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

using Part = Result<std::unique_ptr<Communicator>>;

// Now, or at the end of the group that is open in this thread, in the order of the calls. make: a part, null where this
// rank is in none.
Status make_part(ccomComm_t* out, ccomComm_t comm, std::function<Part(Communicator::Ticket)> make) {
  const auto prepare = [out, comm, make = std::move(make)]() -> Work {
    return [out, make = make, ticket = comm->communicator->take_ticket()]() mutable -> Status {
      CCOM_TRY_ASSIGN(std::unique_ptr<Communicator> part, make(std::move(ticket)));
      if (part == nullptr) return {};
      auto handle = std::make_unique<ccomComm>();
      handle->communicator = std::move(part);
      *out = handle.release();
      return {};
    };
  };
  if (!group_is_open()) return prepare()();
  add_init_to_group(prepare);
  return {};
}

}  // namespace
}  // namespace ccom

using namespace ccom;  // NOLINT(google-build-using-namespace): the C functions below are its border

ccomResult_t ccomCommSplit(ccomComm_t comm, int color, int key, ccomComm_t* newcomm, const ccomConfig_t* config) {
  return guarded("ccomCommSplit", [&]() -> Status {
    if (newcomm == nullptr) return error(Code::InvalidArgument, "newcomm is NULL");
    CCOM_TRY(check_handle(comm));
    *newcomm = nullptr;
    if (color < 0 && color != CCOM_SPLIT_NOCOLOR)
      return error(Code::InvalidArgument, "color is %d; it must be 0 or more, or CCOM_SPLIT_NOCOLOR", color);
    CCOM_TRY_ASSIGN(CommConfig resolved, resolve_part(config, comm->communicator->config()));
    const Communicator::SplitRequest request{color, key, std::move(resolved)};
    return make_part(newcomm, comm, [comm, request](Communicator::Ticket ticket) {
      return comm->communicator->split(std::move(ticket), request);
    });
  });
}

ccomResult_t ccomCommCreateGroup(ccomComm_t comm, const int* ranks, int nranks, ccomComm_t* newcomm,
                                 const ccomConfig_t* config) {
  return guarded("ccomCommCreateGroup", [&]() -> Status {
    if (newcomm == nullptr) return error(Code::InvalidArgument, "newcomm is NULL");
    CCOM_TRY(check_handle(comm));
    *newcomm = nullptr;
    CCOM_TRY_ASSIGN(std::vector<Rank> members, check_members(*comm->communicator, ranks, nranks));
    CCOM_TRY_ASSIGN(CommConfig resolved, resolve_part(config, comm->communicator->config()));
    return make_part(newcomm, comm,
                     [comm, members = std::move(members), resolved = std::move(resolved)](Communicator::Ticket ticket) {
                       return comm->communicator->create_group(std::move(ticket), members, resolved);
                     });
  });
}
