// SPDX-License-Identifier: Apache-2.0
//
// Linked with one whole room and its declared neighbours alone: a forbidden dependency is an unresolved symbol.
int main() { return 0; }
