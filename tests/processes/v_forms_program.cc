// SPDX-License-Identifier: Apache-2.0
//
// One rank of a process test of v-forms.
//   v_forms_program once SCALE     calls of all of them (tests/api/v_form_calls.h); "right", or "wrong ..."
//   v_forms_program odd RANK       all of them as above, then an alltoallv to which RANK gives another count; "failed
//   ..." v_forms_program loop SCALE     calls without end: "ready" after the third round, "failed ..." on the first
//   error

#include <cstdlib>

#include "tests/api/v_form_calls.h"
#include "tests/processes/rank.h"

namespace {

using namespace ccom;

int call_all(ccomComm_t comm, size_t scale) {
  for (const size_t gaps : {size_t{0}, size_t{2}, static_cast<size_t>(rank) + 1}) {
    const std::string fault = VFormCalls(comm, scale, gaps).run();
    if (fault.empty()) continue;
    say("wrong " + fault);
    return 1;
  }
  ccomCommDestroy(comm);
  say("right");
  return 0;
}

int call_with_another_count(ccomComm_t comm, int odd) {
  const std::string fault = VFormCalls(comm, 10, 0).run();
  if (!fault.empty()) say("wrong " + fault);
  std::vector<size_t> sent(static_cast<size_t>(nranks), 3), received(sent);
  if (rank == odd) sent[1] = 4;
  std::vector<int> send(100), recv(100);
  return report_failure(comm, ccomAlltoAllV(send.data(), sent.data(), nullptr, recv.data(), received.data(), nullptr,
                                            ccomInt32, comm, nullptr));
}

int call_without_end(ccomComm_t comm, size_t scale) {
  for (int round = 0;; ++round) {
    if (round == 3) say("ready");
    const std::string fault = VFormCalls(comm, scale, 1).run();
    if (fault.empty()) continue;
    ccomResult_t state = ccomSuccess;
    ccomCommGetAsyncError(comm, &state);
    return report_failure(comm, state);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3 || !begin_rank()) return 3;
  const std::string what = argv[1];
  ccomComm_t comm = join(nullptr);
  if (what == "once") return call_all(comm, std::strtoul(argv[2], nullptr, 10));
  if (what == "odd") return call_with_another_count(comm, std::atoi(argv[2]));
  if (what == "loop") return call_without_end(comm, std::strtoul(argv[2], nullptr, 10));
  return 3;
}
