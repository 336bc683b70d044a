/* SPDX-License-Identifier: Apache-2.0 */
/* A C99 program that knows ccom only as an installed package. */
#include <ccom/ccom.h>
#include <stdio.h>

int main(void) {
  ccomComm_t comms[2];
  float send[2] = {1.5f, 2.5f};
  float recv[2] = {0, 0};
  int i;
  ccomConfig_t config = CCOM_CONFIG_INIT;
  ccomCommInfo_t info = CCOM_COMM_INFO_INIT;
  ccomErrorInfo_t error = CCOM_ERROR_INFO_INIT;
  config.commName = "consumer";
  if (ccomCommInitAll(comms, 2, &config) != ccomSuccess) {
    fprintf(stderr, "%s\n", ccomGetLastError(NULL));
    return 1;
  }
  ccomGroupStart();
  for (i = 0; i < 2; ++i) ccomAllReduce(&send[i], &recv[i], 1, ccomFloat32, ccomSum, comms[i], NULL);
  if (ccomGroupEnd() != ccomSuccess) {
    fprintf(stderr, "%s\n", ccomGetLastError(NULL));
    return 1;
  }
  if (ccomCommGetInfo(comms[1], &info) != ccomSuccess || info.rank != 1) return 1;
  if (ccomGetErrorInfo(comms[1], &error) != ccomSuccess || error.result != ccomSuccess) return 1;
  for (i = 0; i < 2; ++i) ccomCommDestroy(comms[i]);
  printf("%g %g\n", (double)recv[0], (double)recv[1]);
  return recv[0] == 4 && recv[1] == 4 ? 0 : 1;
}
