// SPDX-License-Identifier: Apache-2.0
//
// Launchers that start one thing per host, a pod for instance, and leave to others which ranks run in it.
#pragma once

#include <optional>

#include "bootstrap/launch.h"

namespace ccom {

// Nothing if none of them is present: Kubeflow Trainer, Kubernetes, SageMaker, in this order.
Result<std::optional<Launch>> read_host_launch(const EnvironmentLookup& environment);

}  // namespace ccom
