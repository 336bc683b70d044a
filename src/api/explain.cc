// SPDX-License-Identifier: Apache-2.0
//
// What would be done in a call, and why.
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
  for (uint8_t c = 0; c <= static_cast<uint8_t>(Collective::SendReceive); ++c) {
    request.collective = static_cast<Collective>(c);
    if (name_of(request.collective) != collective) continue;
    const bool rooted = request.collective == Collective::Broadcast || request.collective == Collective::Reduce ||
                        request.collective == Collective::Gather || request.collective == Collective::Scatter;
    if (rooted && (root < 0 || root >= nranks))
      return error(Code::InvalidArgument, "rank is %d; it must be within 0..%d", root, nranks - 1);
    request.root = rooted ? root : -1;
    return request;
  }
  return error(Code::InvalidArgument, "there is no collective '%s'", collective);
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
