// SPDX-License-Identifier: Apache-2.0
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "communicator.h"
#include "documentation.h"
#include "membership.h"
#include "results.h"

namespace ccom_core {
namespace {

using namespace nb::literals;

nb::dict info(Communicator& self) {
  ccomCommInfo_t info = CCOM_COMM_INFO_INIT;
  self.run([&](ccomComm_t comm) { return ccomCommGetInfo(comm, &info); });
  nb::dict result;
  result["rank"] = info.rank;
  result["size"] = info.nranks;
  result["num_hosts"] = info.nhosts;
  result["local_rank"] = info.localRank;
  result["local_size"] = info.localNRanks;
  result["transports"] = info.transports;
  result["topology"] = info.topology;
  result["bytes_sent"] = info.bytesSent;
  result["memory_bytes"] = info.memoryBytes;
  result["sequence"] = info.sequence;
  return result;
}

// ask(text, &length) as in ccomParamGet: once for the length, once for the text.
template <typename Ask>
std::string text_from(Ask ask) {
  std::string text(16384, '\0');
  size_t length = text.size();
  ccomResult_t result = ask(text.data(), &length);
  if (result != ccomSuccess && length > text.size()) {
    text.resize(length);
    result = ask(text.data(), &length);
  }
  check(result);
  text.resize(length - 1);
  return text;
}

std::string explain(Communicator& self, const std::string& collective, size_t count, nb::handle dtype, int root) {
  const ccomDataType_t type = type_of(dtype, "dtype");
  const ccomComm_t comm = self.comm();
  return text_from([&](char* text, size_t* length) {
    return ccomExplain(comm, collective.c_str(), count, type, root, text, length);
  });
}

std::string explain_topology(const std::string& topology, const std::string& collective, size_t count, nb::handle dtype,
                             int root) {
  const ccomDataType_t type = type_of(dtype, "dtype");
  return text_from([&](char* text, size_t* length) {
    return ccomTopoExplain(topology.c_str(), collective.c_str(), count, type, root, text, length);
  });
}

std::string report(Communicator& self, bool json, bool host) {
  std::string text(16384 + 256 * static_cast<size_t>(self.size()), '\0');
  size_t length = text.size();
  const int flags = (json ? ccomReportJson : 0) | (host ? ccomReportHost : 0);
  self.run([&](ccomComm_t comm) { return ccomCommReport(comm, flags, text.data(), &length); });
  text.resize(length - 1);
  return text;
}

nb::object async_error(Communicator& self) {
  ccomResult_t result = ccomSuccess;
  check(ccomCommGetAsyncError(self.comm(), &result));
  if (result == ccomSuccess) return nb::none();
  return exception_of(error_info(result, self.comm()));
}

std::vector<int> parent_ranks(Communicator& self) {
  std::vector<int> ranks(static_cast<size_t>(self.size()));
  check(ccomCommGetParentRanks(self.comm(), ranks.data()));
  return ranks;
}

nb::list variables() {
  const ccomParamDesc_t* const* all = nullptr;
  size_t count = 0;
  check(ccomParamList(&all, &count));
  nb::list result;
  for (size_t i = 0; i < count; ++i) {
    result.append(nb::make_tuple(all[i]->key, all[i]->value, all[i]->defaultValue, all[i]->origin, all[i]->help));
  }
  return result;
}

}  // namespace

void add_queries(nb::module_& module, nb::class_<Communicator>& type) {
  type.def("info", &info, documentation::kInfo);
  type.def("_explain", &explain, "collective"_a, "count"_a, "dtype"_a, "root"_a);
  type.def("_report", &report, "json"_a, "host"_a);
  type.def("async_error", &async_error, documentation::kAsyncError);
  type.def("parent_ranks", &parent_ranks, documentation::kParentRanks);
  type.def(
      "witness",
      [](Communicator& self, nb::handle array) {
        const Array watched(array, "array", false);
        self.run([&](ccomComm_t comm) { return ccomCommWitness(watched.data(), watched.bytes(), comm); });
      },
      "array"_a, documentation::kWitness);
  module.def("_explain_topology", &explain_topology, "topology"_a, "collective"_a, "count"_a, "dtype"_a, "root"_a);
  module.def("_variables", &variables);
}

}  // namespace ccom_core
