// SPDX-License-Identifier: Apache-2.0
//
// Texts for the error numbers of libfabric's efa provider (prov_errno). The provider also maps them to FI_E... codes,
// but incompletely in some versions, so this table has precedence. Source: prov/efa/src/efa_errno.h.
#pragma once

namespace ccom::ofi {

struct EfaError {
  int number;
  int fi_error;
  const char* sentence;
};

// Null if the number is unknown.
const EfaError* find_efa_error(int number);

}  // namespace ccom::ofi
