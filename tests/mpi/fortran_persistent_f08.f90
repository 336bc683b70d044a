! SPDX-License-Identifier: Apache-2.0
program persistent
      use mpi_f08
#ifdef EXTENSIONS
      use mpi_f08_ext
#endif
      implicit none
      type(MPI_Request) :: r(3)
      type(MPI_Status) :: status
#include "fortran_persistent.inc"
end program
