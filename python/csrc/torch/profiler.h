// SPDX-License-Identifier: Apache-2.0
//
// The algorithm of a collective, for profiles.
#pragma once

#include <ATen/record_function.h>
#include <ccom/ccom.h>

#include <optional>
#include <string>

namespace ccom_torch {

// An event "ccom::<collective> <algorithm>" from construction to destruction. A no-op if `collective` is null.
// count_bytes: the call's count in bytes.
class AlgorithmRecord {
 public:
  AlgorithmRecord(ccomComm_t comm, const char* collective, size_t count_bytes);

 private:
  std::string name_;
  std::optional<at::RecordFunction> record_;
};

}  // namespace ccom_torch
