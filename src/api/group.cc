// SPDX-License-Identifier: Apache-2.0
//
// Groups: a thread-local list of checked requests, posted all together at the outermost end.
//
// Requests of one communicator and stream stay in order and run as one turn. Communicators run at the same time: the
// first one of the NULL stream in the caller's thread, every further one in a thread of its own, so that one thread may
// hold many ranks.
#include <thread>
#include <utility>
#include <vector>

#include "api/handles.h"

namespace ccom {
namespace {

// The requests of one communicator on one stream.
struct Batch {
  ccomComm_t comm;
  ccomStream_t stream;
  std::vector<Request> requests;
  std::vector<std::shared_ptr<const PreMultiplied>> keep;
  Turns::Ticket ticket = 0;
};

struct Group {
  int depth = 0;
  std::vector<Batch> batches;
  std::vector<std::function<Status()>> inits;
};

Group& group() {
  thread_local Group instance;
  return instance;
}

// Each in a thread but the first; the first error wins.
Status run_all(std::vector<std::function<Status()>> runs) {
  std::vector<Status> results(runs.size());
  std::vector<std::thread> threads;
  for (size_t i = 1; i < runs.size(); ++i) threads.emplace_back([&results, &runs, i] { results[i] = runs[i](); });
  if (!runs.empty()) results[0] = runs[0]();
  for (std::thread& thread : threads) thread.join();
  for (const Status& status : results) CCOM_TRY(status);
  return {};
}

Status post(std::vector<Batch> batches) {
  for (Batch& batch : batches) batch.ticket = batch.comm->communicator->take_ticket();
  std::vector<std::function<Status()>> blocking;
  for (Batch& batch : batches) {
    auto run = [communicator = batch.comm->communicator.get(), ticket = batch.ticket,
                requests = std::move(batch.requests),
                keep = std::move(batch.keep)] { return communicator->run(ticket, requests); };
    if (batch.stream != nullptr) {
      batch.stream->stream.enqueue(std::move(run));
    } else {
      blocking.emplace_back(std::move(run));
    }
  }
  return run_all(std::move(blocking));
}

}  // namespace

bool group_is_open() { return group().depth > 0; }

void add_to_group(ccomComm_t comm, ccomStream_t stream, const Request& request,
                  std::shared_ptr<const PreMultiplied> keep) {
  for (Batch& batch : group().batches) {
    if (batch.comm != comm || batch.stream != stream) continue;
    batch.requests.push_back(request);
    batch.keep.push_back(std::move(keep));
    return;
  }
  group().batches.push_back({comm, stream, {request}, {std::move(keep)}, 0});
}

void add_init_to_group(std::function<Status()> make) { group().inits.push_back(std::move(make)); }

Status submit(ccomComm_t comm, ccomStream_t stream, const Request& request, std::shared_ptr<const PreMultiplied> keep) {
  if (group_is_open()) {
    add_to_group(comm, stream, request, std::move(keep));
    return {};
  }
  Communicator* communicator = comm->communicator.get();
  const Turns::Ticket ticket = communicator->take_ticket();
  if (stream == nullptr) return communicator->run(ticket, request);
  stream->stream.enqueue(
      [communicator, ticket, request, keep = std::move(keep)] { return communicator->run(ticket, request); });
  return {};
}

}  // namespace ccom

using namespace ccom;  // NOLINT(google-build-using-namespace): the C functions below are its border

ccomResult_t ccomGroupStart(void) {
  ++group().depth;
  return ccomSuccess;
}

ccomResult_t ccomGroupEnd(void) {
  return guarded("ccomGroupEnd", [&]() -> Status {
    if (group().depth == 0) return error(Code::InvalidUsage, "there is no open group in this thread");
    if (--group().depth > 0) return {};
    std::vector<Batch> batches = std::exchange(group().batches, {});
    CCOM_TRY(run_all(std::exchange(group().inits, {})));
    return post(std::move(batches));
  });
}
