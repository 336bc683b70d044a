// SPDX-License-Identifier: Apache-2.0
//
// Fortran's persistent calls, and its functions on requests.
#include "doors/mpi/completion.h"
#include "doors/mpi/exported.h"
#include "doors/mpi/fortran.h"

namespace ccom::mpi {
namespace {

Handle request_of(int number) {
  return mpi().is_open_mpi ? fortran().request(number) : mpi().plain(static_cast<Handle>(number));
}

int number_of(Handle request) { return mpi().is_open_mpi ? fortran().number_of(request) : static_cast<int>(request); }

Ours ours_of(int count, const int* requests) {
  return Ours(count, [&](int i) { return request_of(requests[i]); });
}

Handle info(const int* number) { return fortran().info(*number); }

// The handle that a function in C makes, which becomes Fortran's number behind the call.
class Made {
 public:
  explicit Made(int* number) : number_(number) {}
  ~Made() { *number_ = number_of(handle_); }
  Made(const Made&) = delete;
  Made& operator=(const Made&) = delete;
  operator Handle*() { return &handle_; }  // NOLINT(google-explicit-constructor): an argument

 private:
  int* const number_;
  Handle handle_ = mpi().request_null;
};

// What a function on several requests returns: the code of a call of ccom's that has failed. Statuses have none.
void report_all(const Ours& ours, int count, int* error) {
  for (int i = 0; i < count; ++i)
    if (const int code = ours.report(i)) *error = code;
}

// Indices count from 1.
void report_named(const Ours& ours, int count, const int* indices, int* error) {
  for (int i = 0; i < named(count); ++i)
    if (const int code = ours.report(indices[i] - 1)) *error = code;
}

void start(int count, const int* requests) {
  for (int i = 0; i < count; ++i)
    if (Request* const ours = Requests::get().find(request_of(requests[i]))) ours->start();
}

}  // namespace
}  // namespace ccom::mpi

using namespace ccom::mpi;  // NOLINT(google-build-using-namespace): the functions below are MPI's

// With the names of Open MPI 4.
#define CCOM_FORTRAN_INIT(name, given, ...)                         \
  CCOM_FORTRAN_ALIAS(mpix_##name##_, mpi_##name##_, __VA_ARGS__);   \
  CCOM_FORTRAN_ALIAS(ompix_##name##_f, mpi_##name##_, __VA_ARGS__); \
  CCOM_FORTRAN(name, given, __VA_ARGS__)

CCOM_FORTRAN_INIT(barrier_init, (c, i, made, error), int* c, int* i, int* made, [[maybe_unused]] int* error) {
  return MPI_Barrier_init(comm(c), info(i), Made(made));
}
CCOM_FORTRAN_INIT(bcast_init, (b, n, t, root, c, i, made, error), void* b, int* n, int* t, int* root, int* c, int* i,
                  int* made, [[maybe_unused]] int* error) {
  return MPI_Bcast_init(at(b), *n, type(t), *root, comm(c), info(i), Made(made));
}
CCOM_FORTRAN_INIT(allreduce_init, (s, r, n, t, o, c, i, made, error), void* s, void* r, int* n, int* t, int* o, int* c,
                  int* i, int* made, [[maybe_unused]] int* error) {
  return MPI_Allreduce_init(at(s), at(r), *n, type(t), op(o), comm(c), info(i), Made(made));
}
CCOM_FORTRAN_INIT(reduce_init, (s, r, n, t, o, root, c, i, made, error), void* s, void* r, int* n, int* t, int* o,
                  int* root, int* c, int* i, int* made, [[maybe_unused]] int* error) {
  return MPI_Reduce_init(at(s), at(r), *n, type(t), op(o), *root, comm(c), info(i), Made(made));
}
CCOM_FORTRAN_INIT(reduce_scatter_block_init, (s, r, n, t, o, c, i, made, error), void* s, void* r, int* n, int* t,
                  int* o, int* c, int* i, int* made, [[maybe_unused]] int* error) {
  return MPI_Reduce_scatter_block_init(at(s), at(r), *n, type(t), op(o), comm(c), info(i), Made(made));
}
CCOM_FORTRAN_INIT(allgather_init, (s, ns, ts, r, nr, tr, c, i, made, error), void* s, int* ns, int* ts, void* r,
                  int* nr, int* tr, int* c, int* i, int* made, [[maybe_unused]] int* error) {
  return MPI_Allgather_init(at(s), *ns, type(ts), at(r), *nr, type(tr), comm(c), info(i), Made(made));
}
CCOM_FORTRAN_INIT(alltoall_init, (s, ns, ts, r, nr, tr, c, i, made, error), void* s, int* ns, int* ts, void* r, int* nr,
                  int* tr, int* c, int* i, int* made, [[maybe_unused]] int* error) {
  return MPI_Alltoall_init(at(s), *ns, type(ts), at(r), *nr, type(tr), comm(c), info(i), Made(made));
}
CCOM_FORTRAN_INIT(gather_init, (s, ns, ts, r, nr, tr, root, c, i, made, error), void* s, int* ns, int* ts, void* r,
                  int* nr, int* tr, int* root, int* c, int* i, int* made, [[maybe_unused]] int* error) {
  return MPI_Gather_init(at(s), *ns, type(ts), at(r), *nr, type(tr), *root, comm(c), info(i), Made(made));
}
CCOM_FORTRAN_INIT(scatter_init, (s, ns, ts, r, nr, tr, root, c, i, made, error), void* s, int* ns, int* ts, void* r,
                  int* nr, int* tr, int* root, int* c, int* i, int* made, [[maybe_unused]] int* error) {
  return MPI_Scatter_init(at(s), *ns, type(ts), at(r), *nr, type(tr), *root, comm(c), info(i), Made(made));
}

// Around the MPI's own function, which converts handles, indices and statuses. mpi_x_ is called by programs, ompi_x_f
// and pmpi_x_ by Open MPI's mpi_f08, mpi_x_f08_ by programs with MPICH's, which goes on to PMPI_ functions; `error` may
// be missing there. MPICH's mpi_x_ calls MPI_X.
#define CCOM_FORTRAN_REQUESTS(name, given, ...)                                             \
  CCOM_MPI_EXPORT_FORTRAN void mpi_##name##_(__VA_ARGS__);                                  \
  CCOM_MPI_EXPORT_FORTRAN void mpi_##name##_f08_(__VA_ARGS__);                              \
  CCOM_FORTRAN_ALIAS(pmpi_##name##_, mpi_##name##_, __VA_ARGS__);                           \
  CCOM_FORTRAN_ALIAS(ompi_##name##_f, mpi_##name##_, __VA_ARGS__);                          \
  static decltype(&mpi_##name##_) below_##name() {                                          \
    static const auto next = reinterpret_cast<decltype(&mpi_##name##_)>(                    \
        ::dlsym(RTLD_NEXT, mpi().is_open_mpi ? "ompi_" #name "_f" : "mpi_" #name "_f08_")); \
    return next;                                                                            \
  }                                                                                         \
  static void run_##name(__VA_ARGS__);                                                      \
  void mpi_##name##_(__VA_ARGS__) {                                                         \
    static const auto next = next_of<decltype(&mpi_##name##_)>("mpi_" #name "_");           \
    return next != nullptr ? next given : run_##name given;                                 \
  }                                                                                         \
  void mpi_##name##_f08_(__VA_ARGS__) {                                                     \
    int code = kSuccess;                                                                    \
    if (error == nullptr) error = &code;                                                    \
    run_##name given;                                                                       \
  }                                                                                         \
  void run_##name(__VA_ARGS__)

CCOM_FORTRAN_REQUESTS(start, (request, error), int* request, int* error) {
  below_start()(request, error);
  if (*error == kSuccess) start(1, request);
}
CCOM_FORTRAN_REQUESTS(startall, (count, requests, error), int* count, int* requests, int* error) {
  below_startall()(count, requests, error);
  if (*error == kSuccess) start(*count, requests);
}
CCOM_FORTRAN_REQUESTS(wait, (request, status, error), int* request, int* status, int* error) {
  const Ours ours = ours_of(1, request);
  ours.complete();
  below_wait()(request, status, error);
  report_all(ours, 1, error);
}
CCOM_FORTRAN_REQUESTS(test, (request, flag, status, error), int* request, int* flag, int* status, int* error) {
  const Ours ours = ours_of(1, request);
  ours.advance();
  below_test()(request, flag, status, error);
  if (*flag != 0) report_all(ours, 1, error);
}
CCOM_FORTRAN_REQUESTS(waitall, (count, requests, statuses, error), int* count, int* requests, int* statuses,
                      int* error) {
  const Ours ours = ours_of(*count, requests);
  ours.complete();
  below_waitall()(count, requests, statuses, error);
  report_all(ours, *count, error);
}
CCOM_FORTRAN_REQUESTS(testall, (count, requests, flag, statuses, error), int* count, int* requests, int* flag,
                      int* statuses, int* error) {
  const Ours ours = ours_of(*count, requests);
  ours.advance();
  below_testall()(count, requests, flag, statuses, error);
  if (*flag != 0) report_all(ours, *count, error);
}
CCOM_FORTRAN_REQUESTS(testany, (count, requests, index, flag, status, error), int* count, int* requests, int* index,
                      int* flag, int* status, int* error) {
  const Ours ours = ours_of(*count, requests);
  ours.advance();
  below_testany()(count, requests, index, flag, status, error);
  if (*flag != 0) report_named(ours, 1, index, error);
}
CCOM_FORTRAN_REQUESTS(waitany, (count, requests, index, status, error), int* count, int* requests, int* index,
                      int* status, int* error) {
  const Ours ours = ours_of(*count, requests);
  if (ours.empty()) return below_waitany()(count, requests, index, status, error);
  int flag = 0;
  ours.wait_until([&] {
    below_testany()(count, requests, index, &flag, status, error);
    return *error != kSuccess || flag != 0;
  });
  report_named(ours, 1, index, error);
}
CCOM_FORTRAN_REQUESTS(testsome, (count, requests, outcount, indices, statuses, error), int* count, int* requests,
                      int* outcount, int* indices, int* statuses, int* error) {
  const Ours ours = ours_of(*count, requests);
  ours.advance();
  below_testsome()(count, requests, outcount, indices, statuses, error);
  report_named(ours, *outcount, indices, error);
}
CCOM_FORTRAN_REQUESTS(waitsome, (count, requests, outcount, indices, statuses, error), int* count, int* requests,
                      int* outcount, int* indices, int* statuses, int* error) {
  const Ours ours = ours_of(*count, requests);
  if (ours.empty()) return below_waitsome()(count, requests, outcount, indices, statuses, error);
  ours.wait_until([&] {
    below_testsome()(count, requests, outcount, indices, statuses, error);
    return *error != kSuccess || *outcount != 0;
  });
  report_named(ours, *outcount, indices, error);
}
CCOM_FORTRAN_REQUESTS(request_free, (request, error), int* request, int* error) {
  Handle handle = request_of(*request);
  if (Requests::get().find(handle) == nullptr) return below_request_free()(request, error);
  *error = MPI_Request_free(&handle);
  *request = number_of(handle);
}
CCOM_FORTRAN_REQUESTS(request_get_status, (request, flag, status, error), int* request, int* flag, int* status,
                      int* error) {
  ours_of(1, request).advance();
  below_request_get_status()(request, flag, status, error);
}
