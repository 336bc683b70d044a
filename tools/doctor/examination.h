// SPDX-License-Identifier: Apache-2.0
//
// What the ranks do together, in parts that each have an end: look, meet, probe, measure, start a job.
#pragma once

#include "tools/doctor/meeting.h"

namespace ccom::doctor {

struct Settings {
  int wait_seconds = 30;  // for the others to come
  int life_seconds = 600;
  bool measures = true;
};

// Collective. What came of it, as far as it went: Report::ended says why it went no further. Pairs that cannot connect
// are not measured, and no job is started where one could not work.
Report examine(int rank, int nranks, const Settings& settings);

}  // namespace ccom::doctor
