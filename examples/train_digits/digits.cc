// SPDX-License-Identifier: Apache-2.0
#include "examples/train_digits/digits.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <numeric>
#include <sstream>
#include <utility>

namespace ccom::digits {
namespace {

bool parse(const std::string& line, Picture* picture) {
  std::istringstream stream(line);
  char comma = 0;
  for (float& pixel : picture->pixels) {
    if (!(stream >> pixel >> comma) || comma != ',' || pixel < 0 || pixel > 16) return false;
    pixel /= 16;
  }
  return static_cast<bool>(stream >> picture->digit) && picture->digit < kClasses;
}

}  // namespace

launch::Outcome read_digits(const std::string& path, Digits* digits) {
  using launch::ExitCode;
  std::ifstream file(path);
  if (!file) return launch::failure(ExitCode::Usage, "%s: %s", path.c_str(), std::strerror(errno));
  size_t number = 0;
  for (std::string line; std::getline(file, line); ++number) {
    Picture picture;
    if (!parse(line, &picture)) {
      return launch::failure(ExitCode::Usage, "%s:%zu: expected 64 pixels from 0 to 16 and a digit", path.c_str(),
                             number + 1);
    }
    (number % 5 == 4 ? digits->test : digits->training).push_back(picture);
  }
  if (digits->test.empty()) return launch::failure(ExitCode::Usage, "%s: too few pictures", path.c_str());
  return {};
}

uint64_t next_random(uint64_t& state) {  // splitmix64 (Steele, Lea, Flood 2014)
  uint64_t z = (state += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

std::vector<size_t> shuffled(size_t count, uint64_t seed) {
  std::vector<size_t> order(count);
  std::iota(order.begin(), order.end(), size_t{0});
  for (size_t i = count; i > 1; --i) std::swap(order[i - 1], order[next_random(seed) % i]);
  return order;
}

}  // namespace ccom::digits
