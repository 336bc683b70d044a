// SPDX-License-Identifier: Apache-2.0
//
// Launchers that start one program per host (for example a pod) and leave the ranks within it to others.
#pragma once

#include <optional>

#include "bootstrap/launch.h"

namespace ccom {

// Empty if none of them is present: Kubeflow Trainer, Kubernetes, SageMaker, in this order.
Result<std::optional<Launch>> read_host_launch(const EnvironmentLookup& environment);

}  // namespace ccom
