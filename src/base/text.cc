// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"

#include <locale.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cinttypes>
#include <cstdio>

namespace ccom {
namespace {

// Of this thread, while it exists.
class InCLocale {
 public:
  // Kept by the C library: nothing is allocated, and no lock taken that a forked child would miss.
  InCLocale() : before_(::uselocale(::newlocale(LC_ALL_MASK, "C", nullptr))) {}
  ~InCLocale() { ::uselocale(before_); }
  InCLocale(const InCLocale&) = delete;
  InCLocale& operator=(const InCLocale&) = delete;

 private:
  const locale_t before_;
};

}  // namespace

int print_into(char* text, size_t size, const char* format, va_list arguments) {
  const InCLocale locale;
  return std::vsnprintf(text, size, format, arguments);
}

std::string printed(const char* format, va_list arguments) {
  va_list copy;
  va_copy(copy, arguments);
  const int length = print_into(nullptr, 0, format, copy);
  va_end(copy);
  std::string text(length > 0 ? static_cast<size_t>(length) : 0, '\0');
  if (length > 0) print_into(text.data(), text.size() + 1, format, arguments);
  return text;
}

std::string printed(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  std::string text = printed(format, arguments);
  va_end(arguments);
  return text;
}

std::optional<double> take_number(std::string_view& text) {
  double number = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failure != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return number;
}

std::string name_ranks(const std::vector<Rank>& ranks) {
  std::vector<std::string> runs;
  for (size_t i = 0; i < ranks.size();) {
    size_t end = i + 1;
    while (end < ranks.size() && ranks[end] == ranks[end - 1] + 1) ++end;
    if (end - i <= 2) end = i + 1;  // "2 and 3" reads better than "2-3"
    std::string run = std::to_string(ranks[i]);
    if (end - i > 1) run += "-" + std::to_string(ranks[end - 1]);
    runs.push_back(std::move(run));
    i = end;
  }
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (size_t i = 0; i < runs.size(); ++i) {
    if (i > 0) text += i + 1 == runs.size() ? " and " : ", ";
    text += runs[i];
  }
  return text;
}

std::string hexadecimal(uint64_t number) {
  std::array<char, 17> text{};
  std::snprintf(text.data(), text.size(), "%016" PRIx64, number);
  return text.data();
}

std::string short_number(uint64_t number) { return hexadecimal(number).substr(0, 6); }

std::string title_of_communicator(uint64_t number, const std::string& name) {
  const std::string text = "communicator " + short_number(number);
  return name.empty() ? text : text + " (" + name + ")";
}

// Row by row of the matrix of distances between the beginnings of both.
size_t edit_distance(std::string_view one, std::string_view other) {
  std::vector<size_t> before_last(other.size() + 1);
  std::vector<size_t> last(other.size() + 1);
  std::vector<size_t> row(other.size() + 1);
  for (size_t j = 0; j <= other.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= one.size(); ++i) {
    before_last.swap(last);
    last.swap(row);
    row[0] = i;
    for (size_t j = 1; j <= other.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (one[i - 1] == other[j - 1] ? 0 : 1)});
      const bool swapped = i > 1 && j > 1 && one[i - 1] == other[j - 2] && one[i - 2] == other[j - 1];
      if (swapped) row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
  }
  return row.back();
}

std::string_view closest(std::string_view word, const std::vector<std::string_view>& words) {
  constexpr size_t kLeastPart = 3;  // of a word inside another
  std::string_view best;
  size_t least = 0;
  for (const std::string_view candidate : words) {
    const size_t distance = edit_distance(word, candidate);
    const std::string_view shorter = word.size() < candidate.size() ? word : candidate;
    const std::string_view longer = word.size() < candidate.size() ? candidate : word;
    const bool contained = shorter.size() >= kLeastPart && longer.find(shorter) != std::string_view::npos;
    if (!contained && distance > std::max(size_t{1}, shorter.size() / 4)) continue;
    if (best.empty() || distance < least) {
      best = candidate;
      least = distance;
    }
  }
  return best;
}

uint64_t hash_of_text(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return hash;
}

}  // namespace ccom
