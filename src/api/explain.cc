// SPDX-License-Identifier: Apache-2.0
//
// Explains the choice for a call.
#include "api/handles.h"
#include "comm/explanation.h"

namespace ccom {
namespace {

Result<Request> request_named(const char* collective, size_t count, ccomDataType_t type, int root, int nranks) {
  if (collective == nullptr) return error(Code::InvalidArgument, "collective is NULL");
  CCOM_TRY(check_size(count, type, nranks));
  Request request;
  request.count = count;
  request.type = static_cast<DataType>(type);
  const std::optional<Collective> named = collective_from(collective);
  if (!named) return error(Code::InvalidArgument, "unknown collective '%s'", collective);
  request.collective = *named;
  if (is_rooted(*named)) request.root = root;
  if (is_rooted(*named) && (root < 0 || root >= nranks))
    return error(Code::InvalidArgument, "root is %d; it must be within 0..%d", root, nranks - 1);
  return request;
}

}  // namespace
}  // namespace ccom

using namespace ccom;  // NOLINT(google-build-using-namespace): the C functions below are its border

ccomResult_t ccomExplain(ccomComm_t comm, const char* collective, size_t count, ccomDataType_t type, int root,
                         char* json, size_t* length) {
  return guarded("ccomExplain", [&]() -> Status {
    CCOM_TRY(check_handle(comm));
    CCOM_TRY_ASSIGN(const Request request, request_named(collective, count, type, root, comm->communicator->nranks()));
    CCOM_TRY_ASSIGN(const std::string text, comm->communicator->explain(request));
    return copy_out(text, json, length);
  });
}

ccomResult_t ccomTopoExplain(const char* topology, const char* collective, size_t count, ccomDataType_t type, int root,
                             char* json, size_t* length) {
  return guarded("ccomTopoExplain", [&]() -> Status {
    if (topology == nullptr) return error(Code::InvalidArgument, "topology is NULL");
    CCOM_TRY_ASSIGN(const Topology machine, make_topology(topology));
    CCOM_TRY_ASSIGN(const Request request, request_named(collective, count, type, root, machine.nranks()));
    CCOM_TRY_ASSIGN(const std::string text, explain_offline(machine, request));
    return copy_out(text, json, length);
  });
}
