// SPDX-License-Identifier: Apache-2.0
//
// Explains the choice for a call.
#include "api/handles.h"
#include "comm/explanation.h"

namespace ccom {
namespace {

struct Named {
  Request request;
  bool is_v = false;
};

// "allgather", "allgatherv"
Status name_collective(const std::string& name, Named& named) {
  const std::optional<Collective> plain = collective_from(name);
  if (plain) {
    named.request.collective = *plain;
    return {};
  }
  for (const Collective collective : {Collective::AllGather, Collective::ReduceScatter, Collective::AllToAll,
                                      Collective::Gather, Collective::Scatter}) {
    if (name != call_name(collective, true)) continue;
    named.request.collective = collective;
    named.is_v = true;
    return {};
  }
  return error(Code::InvalidArgument, "unknown collective '%s'", name.c_str());
}

Result<Named> call_named(const char* collective, size_t count, ccomDataType_t type, int root, int nranks) {
  if (collective == nullptr) return error(Code::InvalidArgument, "collective is NULL");
  CCOM_TRY(check_size(count, type, nranks));
  Named named;
  named.request.count = count;
  named.request.type = static_cast<DataType>(type);
  CCOM_TRY(name_collective(collective, named));
  if (!is_rooted(named.request.collective)) return named;
  named.request.root = root;
  if (root < 0 || root >= nranks)
    return error(Code::InvalidArgument, "root is %d; it must be within 0..%d", root, nranks - 1);
  return named;
}

}  // namespace
}  // namespace ccom

using namespace ccom;  // NOLINT(google-build-using-namespace): the C functions below are its border

ccomResult_t ccomExplain(ccomComm_t comm, const char* collective, size_t count, ccomDataType_t type, int root,
                         char* json, size_t* length) {
  return guarded("ccomExplain", [&]() -> Status {
    CCOM_TRY(check_handle(comm));
    CCOM_TRY_ASSIGN(const Named call, call_named(collective, count, type, root, comm->communicator->nranks()));
    CCOM_TRY_ASSIGN(const std::string text, comm->communicator->explain(call.request, call.is_v));
    return copy_out(text, json, length);
  });
}

ccomResult_t ccomTopoExplain(const char* topology, const char* collective, size_t count, ccomDataType_t type, int root,
                             char* json, size_t* length) {
  return guarded("ccomTopoExplain", [&]() -> Status {
    if (topology == nullptr) return error(Code::InvalidArgument, "topology is NULL");
    CCOM_TRY_ASSIGN(const Topology machine, make_topology(topology));
    CCOM_TRY_ASSIGN(const Named call, call_named(collective, count, type, root, machine.nranks()));
    CCOM_TRY_ASSIGN(const std::string text, explain_offline(machine, call.request, call.is_v));
    return copy_out(text, json, length);
  });
}
