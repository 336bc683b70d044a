// SPDX-License-Identifier: Apache-2.0
//
// Room-private: programs of one stage.
#pragma once

#include "planner/planner.h"

namespace ccom {

// All ranks by messages. Runs in tiles where the algorithm keeps much in scratch, so that no rank's scratch is above
// settings.scratch_bytes.
Program message_program(const Topology& topology, const Settings& settings, const Question& question,
                        MessageAlgorithm algorithm);

// All ranks of the one host through shared memory.
Program node_program(const Topology& topology, const Question& question);

}  // namespace ccom
