/* SPDX-License-Identifier: Apache-2.0
 *
 * Loaded before a program: it has chosen the user's locale when its main() begins. */
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

__attribute__((constructor)) static void choose_locale(void) {
  char text[8] = "";
  if (setlocale(LC_ALL, "") != NULL) snprintf(text, sizeof text, "%.1f", 0.5);
  if (strcmp(text, "0,5") == 0) return;
  fprintf(stderr, "this locale does not write 0,5\n");
  abort();
}
