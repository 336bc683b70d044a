! SPDX-License-Identifier: Apache-2.0
program calls
      implicit none
      include 'mpif.h'
      include 'fortran_calls.inc'
end program
