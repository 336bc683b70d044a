// SPDX-License-Identifier: Apache-2.0
//
// What must be the same in all processes of a job for them to understand one another.
#pragma once

#include <string>

namespace ccom {

// "ccom 0.9.0 (sources 3f2a9c11d04e, flags 5b1c02aa)": version, hash of the library's sources, because each rank makes
// its plans for itself, and of the compiler and its flags, which may change bits of a result. In a file of its own, so
// that a test can link another one.
std::string this_build();

}  // namespace ccom
