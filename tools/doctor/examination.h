// SPDX-License-Identifier: Apache-2.0
//
// The collective phases, each with a timeout: inspect, rendezvous, probe, measure, start a communicator.
#pragma once

#include "tools/doctor/rendezvous.h"

namespace ccom::doctor {

struct Settings {
  int wait_seconds = 30;  // for the other ranks to join
  int life_seconds = 600;
  bool measures = true;
};

// Collective. The results so far; Report::ended says why it ended early. Pairs that cannot connect are not measured,
// and no communicator is started where it could not work.
Report examine(int rank, int nranks, const Settings& settings);

}  // namespace ccom::doctor
