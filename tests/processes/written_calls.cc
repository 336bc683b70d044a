// SPDX-License-Identifier: Apache-2.0
#include "tests/processes/written_calls.h"

#include <cstdlib>
#include <sstream>
#include <vector>

namespace ccom {
namespace {

ccomResult_t make_call(const std::string& call, ccomComm_t comm) {
  std::istringstream words(call);
  std::string collective, word;
  words >> collective;
  ccomDataType_t type = ccomFloat32;
  ccomRedOp_t op = ccomSum;
  size_t count = 0;
  int root = 0;
  while (words >> word) {
    if (word == "int32") type = ccomInt32;
    if (word == "max") op = ccomMax;
    if (word == "count") words >> count;
    if (word == "root") words >> root;
  }
  int nranks = 0;
  ccomCommCount(comm, &nranks);
  std::vector<float> send(count * static_cast<size_t>(nranks) + 1, 1), recv(send.size());
  if (collective == "barrier") return ccomBarrier(comm, nullptr);
  if (collective == "allreduce") return ccomAllReduce(send.data(), recv.data(), count, type, op, comm, nullptr);
  if (collective == "allgather") return ccomAllGather(send.data(), recv.data(), count, type, comm, nullptr);
  if (collective == "reduce_scatter")
    return ccomReduceScatter(send.data(), recv.data(), count, type, op, comm, nullptr);
  if (collective == "broadcast") return ccomBroadcast(send.data(), recv.data(), count, type, root, comm, nullptr);
  if (collective == "reduce") return ccomReduce(send.data(), recv.data(), count, type, op, root, comm, nullptr);
  if (collective == "alltoall") return ccomAlltoAll(send.data(), recv.data(), count, type, comm, nullptr);
  if (collective == "gather") return ccomGather(send.data(), recv.data(), count, type, root, comm, nullptr);
  if (collective == "scatter") return ccomScatter(send.data(), recv.data(), count, type, root, comm, nullptr);
  std::abort();
}

}  // namespace

ccomResult_t make_calls(const std::string& calls, ccomComm_t comm) {
  std::istringstream list(calls);
  ccomResult_t result = ccomSuccess;
  for (std::string call; result == ccomSuccess && std::getline(list, call, ',');) result = make_call(call, comm);
  return result;
}

}  // namespace ccom
