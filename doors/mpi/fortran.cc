// SPDX-License-Identifier: Apache-2.0
//
// Fortran's start of MPI, and its blocking calls.
#include "doors/mpi/fortran.h"

#include "doors/mpi/communicators.h"
#include "doors/mpi/exported.h"

namespace ccom::mpi {

Fortran::Fortran() {
  size_t used = 0;
  for (const char* name : {"mpi_fortran_in_place", "mpi_fortran_in_place_", "mpi_fortran_in_place__"})
    in_places[used++] = ::dlsym(RTLD_DEFAULT, name);
  used = 0;
  for (const char* name : {"mpi_fortran_bottom", "mpi_fortran_bottom_", "mpi_fortran_bottom__"})
    bottoms[used++] = ::dlsym(RTLD_DEFAULT, name);
}

const Fortran& fortran() {
  static const Fortran* const found = new Fortran;
  return *found;
}

void* at(void* buffer) {
  if (buffer == nullptr) return nullptr;
  for (void* const place : fortran().in_places)
    if (buffer == place) return const_cast<void*>(mpi().numbers.in_place);
  for (void* const place : fortran().bottoms)
    if (buffer == place) return nullptr;
  return buffer;
}

namespace {

// Once.
void begin_if_initialized() {
  int is_initialized = 0;
  mpi().Initialized(&is_initialized);
  if (is_initialized != 0) Process::get().begin(true);
}

}  // namespace
}  // namespace ccom::mpi

using namespace ccom::mpi;  // NOLINT(google-build-using-namespace): the functions below are MPI's

// NOLINTBEGIN(readability-identifier-naming)
// MPICH's goes past MPI_Init.
CCOM_MPI_EXPORT_FORTRAN void mpi_init_(int* error) {
  static const auto next = next_of<decltype(&mpi_init_)>("mpi_init_");
  if (next == nullptr)
    *error = MPI_Init(nullptr, nullptr);
  else
    next(error), begin_if_initialized();
}
CCOM_MPI_EXPORT_FORTRAN void mpi_init_thread_(int* required, int* provided, int* error) {
  static const auto next = next_of<decltype(&mpi_init_thread_)>("mpi_init_thread_");
  if (next == nullptr)
    *error = MPI_Init_thread(nullptr, nullptr, *required, provided);
  else
    next(required, provided, error), begin_if_initialized();
}
// Module mpi_f08's; `error` may be missing.
CCOM_MPI_EXPORT_FORTRAN void mpi_init_f08_(int* error) {
  static const auto next = reinterpret_cast<decltype(&mpi_init_f08_)>(::dlsym(RTLD_NEXT, "mpi_init_f08_"));
  next(error);
  begin_if_initialized();
}
CCOM_MPI_EXPORT_FORTRAN void mpi_init_thread_f08_(int* required, int* provided, int* error) {
  static const auto next =
      reinterpret_cast<decltype(&mpi_init_thread_f08_)>(::dlsym(RTLD_NEXT, "mpi_init_thread_f08_"));
  next(required, provided, error);
  begin_if_initialized();
}
CCOM_MPI_EXPORT_FORTRAN void ompi_init_f(int* error) __attribute__((alias("mpi_init_")));
CCOM_MPI_EXPORT_FORTRAN void ompi_init_thread_f(int* required, int* provided, int* error)
    __attribute__((alias("mpi_init_thread_")));
// NOLINTEND(readability-identifier-naming)

CCOM_FORTRAN(barrier, (c, error), int* c, [[maybe_unused]] int* error) { return MPI_Barrier(comm(c)); }
CCOM_FORTRAN(bcast, (b, n, t, root, c, error), void* b, int* n, int* t, int* root, int* c,
             [[maybe_unused]] int* error) {
  return MPI_Bcast(at(b), *n, type(t), *root, comm(c));
}
CCOM_FORTRAN(allreduce, (s, r, n, t, o, c, error), void* s, void* r, int* n, int* t, int* o, int* c,
             [[maybe_unused]] int* error) {
  return MPI_Allreduce(at(s), at(r), *n, type(t), op(o), comm(c));
}
CCOM_FORTRAN(reduce, (s, r, n, t, o, root, c, error), void* s, void* r, int* n, int* t, int* o, int* root, int* c,
             [[maybe_unused]] int* error) {
  return MPI_Reduce(at(s), at(r), *n, type(t), op(o), *root, comm(c));
}
CCOM_FORTRAN(reduce_scatter, (s, r, n, t, o, c, error), void* s, void* r, int* n, int* t, int* o, int* c,
             [[maybe_unused]] int* error) {
  return MPI_Reduce_scatter(at(s), at(r), n, type(t), op(o), comm(c));
}
CCOM_FORTRAN(reduce_scatter_block, (s, r, n, t, o, c, error), void* s, void* r, int* n, int* t, int* o, int* c,
             [[maybe_unused]] int* error) {
  return MPI_Reduce_scatter_block(at(s), at(r), *n, type(t), op(o), comm(c));
}
CCOM_FORTRAN(allgather, (s, ns, ts, r, nr, tr, c, error), void* s, int* ns, int* ts, void* r, int* nr, int* tr, int* c,
             [[maybe_unused]] int* error) {
  return MPI_Allgather(at(s), *ns, type(ts), at(r), *nr, type(tr), comm(c));
}
CCOM_FORTRAN(allgatherv, (s, ns, ts, r, nr, d, tr, c, error), void* s, int* ns, int* ts, void* r, int* nr, int* d,
             int* tr, int* c, [[maybe_unused]] int* error) {
  return MPI_Allgatherv(at(s), *ns, type(ts), at(r), nr, d, type(tr), comm(c));
}
CCOM_FORTRAN(alltoall, (s, ns, ts, r, nr, tr, c, error), void* s, int* ns, int* ts, void* r, int* nr, int* tr, int* c,
             [[maybe_unused]] int* error) {
  return MPI_Alltoall(at(s), *ns, type(ts), at(r), *nr, type(tr), comm(c));
}
CCOM_FORTRAN(alltoallv, (s, ns, ds, ts, r, nr, dr, tr, c, error), void* s, int* ns, int* ds, int* ts, void* r, int* nr,
             int* dr, int* tr, int* c, [[maybe_unused]] int* error) {
  return MPI_Alltoallv(at(s), ns, ds, type(ts), at(r), nr, dr, type(tr), comm(c));
}
CCOM_FORTRAN(gather, (s, ns, ts, r, nr, tr, root, c, error), void* s, int* ns, int* ts, void* r, int* nr, int* tr,
             int* root, int* c, [[maybe_unused]] int* error) {
  return MPI_Gather(at(s), *ns, type(ts), at(r), *nr, type(tr), *root, comm(c));
}
CCOM_FORTRAN(gatherv, (s, ns, ts, r, nr, d, tr, root, c, error), void* s, int* ns, int* ts, void* r, int* nr, int* d,
             int* tr, int* root, int* c, [[maybe_unused]] int* error) {
  return MPI_Gatherv(at(s), *ns, type(ts), at(r), nr, d, type(tr), *root, comm(c));
}
CCOM_FORTRAN(scatter, (s, ns, ts, r, nr, tr, root, c, error), void* s, int* ns, int* ts, void* r, int* nr, int* tr,
             int* root, int* c, [[maybe_unused]] int* error) {
  return MPI_Scatter(at(s), *ns, type(ts), at(r), *nr, type(tr), *root, comm(c));
}
CCOM_FORTRAN(scatterv, (s, ns, d, ts, r, nr, tr, root, c, error), void* s, int* ns, int* d, int* ts, void* r, int* nr,
             int* tr, int* root, int* c, [[maybe_unused]] int* error) {
  return MPI_Scatterv(at(s), ns, d, type(ts), at(r), *nr, type(tr), *root, comm(c));
}
