// SPDX-License-Identifier: Apache-2.0
//
// Memory that peers on the node may map: what this process allocates from its arena, and the arenas of other processes.
// Process-wide, because a buffer belongs to no communicator.
#pragma once

#include <memory>

#include "base/secret.h"
#include "base/status.h"
#include "base/time.h"
#include "memory/arena.h"

namespace ccom {

// This process's arena; made on the first call. Null if there is none: switched off, or the system has no room for it
// (logged once). Thread-safe, as is everything here.
Arena* process_arena();
// Random; tells processes apart, on all hosts.
const uint64_t& process_number();

// Page-aligned, zeroed; from the arena, or ordinary memory if there is none.
Result<void*> allocate_shareable(size_t bytes);
// InvalidArgument for a pointer that did not come from allocate_shareable.
Status free_shareable(void* pointer);

// Puts ordinary memory within reach of the node, in place, if it can (Arena::adopt); true if it is there now, because
// it was adopted or lies in the arena anyway. Why not is logged, and no error: calls on it copy.
bool register_memory(void* begin, size_t bytes);
// Undoes one register_memory() that returned true.
Status deregister_memory(void* begin, size_t bytes);

// The arena of another process as mapped here, if it is; shared by all communicators of this process.
std::shared_ptr<SharedSegment> mapped_arena(uint64_t process);
void remember_arena(uint64_t process, const std::shared_ptr<SharedSegment>& segment);

}  // namespace ccom
