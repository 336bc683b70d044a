// SPDX-License-Identifier: Apache-2.0
//
// What is seen as JSON, of the form that docs/ccom-status.schema.json describes.
#pragma once

#include <string>

#include "tools/jobs/health.h"
#include "tools/jobs/rates.h"
#include "tools/jobs/seen.h"

namespace ccom {

// One line without its end. rates: null where there was one look only.
std::string to_json(const HostSeen& seen, const Health& health, const Rates* rates);

}  // namespace ccom
