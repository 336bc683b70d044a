// SPDX-License-Identifier: Apache-2.0
//
// What libfabric's efa provider means by its own error numbers (prov_errno). It maps them to FI_E... too, but how many
// depends on its version, so ours goes first. Source: prov/efa/src/efa_errno.h of libfabric.
#pragma once

namespace ccom::ofi {

struct EfaError {
  int number;
  int fi_error;
  const char* sentence;
};

// Null if the number is not known.
const EfaError* find_efa_error(int number);

}  // namespace ccom::ofi
