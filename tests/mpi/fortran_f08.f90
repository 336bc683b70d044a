! SPDX-License-Identifier: Apache-2.0
program calls
      use mpi_f08
      implicit none
      include 'fortran_calls.inc'
end program
