// SPDX-License-Identifier: Apache-2.0
//
// ccom-trace: what the ranks of a job did last, by the files that CCOM_RECORD had them write. Ends with 0, 3 if the
// command line is wrong or there is nothing to read, 1 if a file cannot be written.
#include <cstdio>
#include <fstream>

#include "bench/command_line/command_line.h"
#include "tools/trace/outputs.h"
#include "tools/trace/words.h"

namespace {

using namespace ccom;
using namespace ccom::tracetool;

constexpr int kFailed = 1;
constexpr int kConfigError = 3;

struct Request {
  std::vector<std::string> paths;
  std::string communicator, perfetto_file, tensorboard_folder;
  size_t count = 8, job = 1;
  bool json = false, all_calls = false, all_communicators = false;
};

int fail(const Status& status, int code) {
  std::fprintf(stderr, "ccom-trace: %s\n", status.text().c_str());
  return code;
}

bool is_wanted(const Request& request, const RecordedJob& job, const RecordedGroup& group) {
  if (!request.communicator.empty()) return group_name(group).find(request.communicator) != std::string::npos;
  if (group.last_number() == 0 && !request.all_communicators) return false;
  return group.nranks == job.groups.front().nranks || request.all_communicators || first_difference(group).has_value();
}

void show(const Request& request, const RecordedJob& job) {
  std::fputs(job_text(job).c_str(), stdout);
  for (const RecordedGroup& group : job.groups) {
    if (!is_wanted(request, job, group)) continue;
    std::printf("\n%s", calls_text(job, group, last_calls(job, group, request.count)).c_str());
    std::fputs(stragglers_text(group, find_stragglers(job, group)).c_str(), stdout);
  }
}

Status write_files(const Request& request, const RecordedJob& job) {
  if (!request.perfetto_file.empty()) {
    std::ofstream out(request.perfetto_file);
    write_perfetto(job, out);
    if (!out.flush()) return error(Code::SystemError, "cannot write %s", request.perfetto_file.c_str());
  }
  if (!request.tensorboard_folder.empty()) {
    CCOM_TRY_ASSIGN(const std::string path, write_tensorboard(job, request.tensorboard_folder));
    std::fprintf(stderr, "ccom-trace: wrote %s\n", path.c_str());
  }
  return {};
}

int run(const Request& request) {
  std::vector<std::string> refused;
  const auto jobs = read_jobs(request.paths, refused);
  for (const std::string& reason : refused) std::fprintf(stderr, "ccom-trace: left out: %s\n", reason.c_str());
  if (!jobs) return fail(jobs.error(), kConfigError);
  if (request.job == 0 || request.job > jobs->size())
    return fail(error(Code::ConfigError, "there are recordings of %zu jobs", jobs->size()), kConfigError);
  if (jobs->size() > 1)
    std::fprintf(stderr, "ccom-trace: recordings of %zu jobs; this is number %zu, of which 1 ended last (--job)\n",
                 jobs->size(), request.job);
  const RecordedJob& job = (*jobs)[request.job - 1];
  if (request.json)
    std::fputs(to_json(job, request.count, request.all_calls).c_str(), stdout);
  else
    show(request, job);
  const Status written = write_files(request, job);
  return written.is_ok() ? 0 : fail(written, kFailed);
}

}  // namespace

int main(int argc, char** argv) {
  Request request;
  CommandLine line("ccom-trace", "Says what the ranks of a job did last, by what they recorded (CCOM_RECORD).");
  line.option("paths", request.paths, "The folder that CCOM_RECORD named, or files of it").file().required();
  line.option("-n,--last", request.count, "How many calls of a communicator to show (default: 8)").positive();
  line.option("--communicator", request.communicator, "Of the communicators whose name contains this alone");
  line.flag("--all", request.all_communicators,
            "Of all communicators, and not only those of all ranks and those whose ranks differ");
  line.option("--job", request.job, "Which job, where there are several; 1 ended last (default)").positive();
  line.flag("--json", request.json, "One object in one line");
  line.flag("--calls", request.all_calls, "With --json: every call of every rank");
  line.option("--perfetto", request.perfetto_file, "Write all calls for ui.perfetto.dev or chrome://tracing").file();
  line.option("--tensorboard", request.tensorboard_folder, "Write scalars for TensorBoard into this folder").file();
  if (const std::optional<int> code = line.exit_code({argv + 1, argv + argc})) return *code;
  return run(request);
}
