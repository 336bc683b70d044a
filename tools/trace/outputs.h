// SPDX-License-Identifier: Apache-2.0
//
// What ccom-trace writes of a job.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "base/status.h"
#include "trace/differences.h"
#include "trace/recorded_job.h"
#include "trace/stragglers.h"

namespace ccom::tracetool {

// Whose recordings there are, and how far the clocks of their machines are apart.
std::string job_text(const RecordedJob& job);
// The calls of the ranks side by side; the first that differs is marked by ">".
std::string calls_text(const RecordedJob& job, const RecordedGroup& group, const std::vector<ComparedCall>& calls);
// Who made the others wait, at most `most`; "" if nobody did.
std::string stragglers_text(const RecordedGroup& group, const std::vector<Straggler>& stragglers, size_t most = 8);

// An object in one line: the job, its clocks, and of each communicator the last `count` calls compared and the
// stragglers; with_calls: every call of every rank too.
std::string to_json(const RecordedJob& job, size_t count, bool with_calls);

// Every call as a slice, for ui.perfetto.dev and chrome://tracing: Chrome's trace event format. A process is a rank, a
// thread one of its communicators.
void write_perfetto(const RecordedJob& job, std::ostream& out);

// A file of scalars into the folder, which is made: of each rank and collective the time of a call and what of it was
// waited, at most a thousand points each. Returns its path.
Result<std::string> write_tensorboard(const RecordedJob& job, const std::string& folder);

}  // namespace ccom::tracetool
