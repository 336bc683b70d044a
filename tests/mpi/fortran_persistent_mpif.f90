! SPDX-License-Identifier: Apache-2.0
program persistent
      implicit none
      include 'mpif.h'
      integer :: r(3), status(MPI_STATUS_SIZE)
#include "fortran_persistent.inc"
end program
