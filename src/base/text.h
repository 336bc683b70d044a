// SPDX-License-Identifier: Apache-2.0
//
// Text fragments used in several places, and what texts are compared by.
#pragma once

#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/types.h"

namespace ccom {

// "rank 3", "ranks 1, 4-7 and 12". Expects ascending ranks; runs of three or more are abbreviated.
std::string name_ranks(const std::vector<Rank>& ranks);

// As printf in the "C" locale, whatever that of the process or thread is: numbers of JSON and metrics have a point.
[[gnu::format(printf, 1, 2)]] std::string printed(const char* format, ...);
[[gnu::format(printf, 1, 0)]] std::string printed(const char* format, va_list arguments);
// Into memory of that size, cut off if it is longer; the length of all. Allocates nothing.
[[gnu::format(printf, 3, 0)]] int print_into(char* text, size_t size, const char* format, va_list arguments);
// The number at the beginning of `text`, which begins behind it afterwards; likewise. Nothing if there is none.
std::optional<double> take_number(std::string_view& text);

// 16 digits, and those of a communicator's number that people read.
std::string hexadecimal(uint64_t number);
std::string short_number(uint64_t number);

// "communicator f4ab04 (training)", of one without a name "communicator f4ab04".
std::string title_of_communicator(uint64_t number, const std::string& name);

// Letters to insert, leave out, replace or swap with their neighbour to make one word of the other.
size_t edit_distance(std::string_view one, std::string_view other);

// The word that `word` is probably meant to be: few letters away, or one is a part of the other; "" if none is like it.
std::string_view closest(std::string_view word, const std::vector<std::string_view>& words);

// FNV-1a: equal texts have equal hashes on every machine.
uint64_t hash_of_text(std::string_view text);

}  // namespace ccom
