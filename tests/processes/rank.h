// SPDX-License-Identifier: Apache-2.0
//
// What programs of process tests share: who this rank is, how it joins, and how it reports to the test.
#pragma once

#include <ccom/ccom.h>

#include <string>

namespace ccom {

// Of this process.
inline int rank = 0;
inline int nranks = 0;

// At the start of a program, which ends with its test. False if nobody says who it is.
bool begin_rank();
// One line for the test.
void say(const std::string& line);
// Says "failed CODE [PEERS] TEXT".
void say_failure(ccomComm_t comm, ccomResult_t result);
// The same; destroys the communicator; the program's exit code.
int report_failure(ccomComm_t comm, ccomResult_t result);
// The same where there is an error, and ends the process.
void require(ccomComm_t comm, ccomResult_t result);
// Joins the job. Where that fails it says "init CODE [PEERS] TEXT" and ends the process.
ccomComm_t join(const ccomConfig_t* config);

// HOW: mapped, registered, ordinary. Whole pages, so that they can be registered.
void* allocate(const std::string& how, size_t bytes, ccomComm_t comm);
void fill_canary(void* buffer, size_t bytes);
// Says whether a filled buffer stays as it is for that time: "kept" or "overwritten N".
void watch_canary(const void* buffer, size_t bytes, int looks, int interval_ms);

}  // namespace ccom
