// SPDX-License-Identifier: Apache-2.0
//
// Which ranks made the others wait, as ccom says.
#include <pybind11/pybind11.h>

#include "../common/call_site.h"
#include "process_group.h"
#include "types.h"

namespace ccom_torch {

// On all ranks after the operations issued before, unless it is of this host's ranks alone.
std::string Communicator::report(int size, int flags, const std::string& site) {
  const Use use(*this);
  std::string text(16384 + 256 * static_cast<size_t>(size), '\0');
  size_t length = text.size();
  const auto ask = [&] {
    ccomSetCallSite(site.c_str());
    check(ccomCommReport(use.comm(), flags, text.data(), &length), nullptr);
  };
  if ((flags & ccomReportHost) != 0) {
    ask();
  } else {
    run_in_order(ask);
  }
  text.resize(length - 1);
  return text;
}

std::string ProcessGroup::report(bool as_json, bool of_host) {
  std::string site;
  if (const char* const taken = ccom_python::call_site_of_python()) site = taken;
  const pybind11::gil_scoped_release without_gil;
  try {
    return communicator().report(size_, (as_json ? ccomReportJson : 0) | (of_host ? ccomReportHost : 0), site);
  } catch (const CallFailed& failure) {
    rethrow(*communicator().interrupt());
    raise("ccom report (group '" + name_ + "', rank " + std::to_string(rank_) + " of " + std::to_string(size_) +
          "): " + failure.what());
  }
}

}  // namespace ccom_torch
