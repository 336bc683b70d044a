// SPDX-License-Identifier: Apache-2.0
//
// Words and figures in which tables and JSON say what is seen. What another process has written may be no value of its
// type; these take anything.
#pragma once

#include <cstdint>
#include <string>

#include "base/call.h"
#include "observe/rank_activity.h"

namespace ccom {

const char* name_of(RankActivity::State state);    // "in a call"
std::string operation_of(const RankActivity& of);  // "allreduce"; "" if it has made no call
std::string type_of(const CallKind& kind);         // "float32"
uint64_t largest_in(size_t size_class);            // bytes; of all but the last one

// In 7 columns at most: "1.87 G", "940 k", "12".
std::string short_figure(double number);
std::string short_seconds(double seconds);  // "12.4 s", "3:05", "870 ms"; "" below 0
std::string percent(double share);          // "18 %"

// What a rank does, the most telling words first: "allreduce #1871 at train.py:88 (step)".
std::string does(const RankActivity& activity);

// In UTF-8 as it is, with dots for what does not fit.
std::string cut(const std::string& text, size_t columns);

}  // namespace ccom
