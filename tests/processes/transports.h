// SPDX-License-Identifier: Apache-2.0
//
// The ways in which the ranks of a process test are connected.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "tests/harness/processes.h"

namespace ccom {

// shm: one host. tcp, ofi: every rank a host of its own. mixed: two hosts, shm inside and tcp across; mixed-tls: all
// that goes across encrypted.
inline Job::Environment environment_for(const std::string& transport, int rank) {
  if (transport == "shm") return {};
  if (transport == "mixed") return {{"CCOM_HOSTID", "host" + std::to_string(rank / 2)}};
  if (transport == "mixed-tls") return {{"CCOM_HOSTID", "host" + std::to_string(rank / 2)}, {"CCOM_TLS", "1"}};
  if (transport == "tcp-on-one-host") return {{"CCOM_TRANSPORT", "tcp"}};
  return {{"CCOM_TRANSPORT", transport}, {"CCOM_HOSTID", "host" + std::to_string(rank)}};
}

// What a test with such a parameter is called.
inline std::string name_of_case(const testing::TestParamInfo<std::string>& of) {
  std::string name = of.param;
  std::ranges::replace(name, '-', '_');
  return name;
}

}  // namespace ccom
