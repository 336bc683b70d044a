// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/this_build.h"

#include "base/version.h"
#include "source_hash.h"

namespace ccom {

std::string this_build() {
  return std::string("ccom ").append(kVersion).append(" (sources " CCOM_SOURCE_HASH ", flags " CCOM_FLAGS_HASH ")");
}

}  // namespace ccom
