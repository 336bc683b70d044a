// SPDX-License-Identifier: Apache-2.0
//
// Memory that peers on the host may map: a memfd each, remembered by address.
#pragma once

#include <cstddef>

#include "base/status.h"

namespace ccom {

// Page-aligned, zeroed. Thread-safe, as is free_shareable.
Result<void*> allocate_shareable(size_t bytes);
// InvalidArgument for a pointer that did not come from allocate_shareable.
Status free_shareable(void* pointer);

}  // namespace ccom
