// SPDX-License-Identifier: Apache-2.0
//
// Every memory order, fence and kernel call of a protocol is weakened, one at a time; the explorer has to find that
// each is needed.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "explorer.h"

namespace ccom::model {

using Explore = std::function<Outcome(const Options&)>;

// A GoogleTest expectation: the protocol is right as it is, explored wholly, and wrong with each weakening but those in
// `survivors`, which are named as "site -> order" with the reason.
void expect_all_needed(const Explore& explore, const std::map<std::string, std::string>& survivors = {},
                       const Options& options = {});
// The protocol is right, and explored wholly.
void expect_right(const Outcome& outcome);

}  // namespace ccom::model
