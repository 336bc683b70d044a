// SPDX-License-Identifier: Apache-2.0
//
// Texts against files in tests/golden. CCOM_UPDATE_GOLDEN=1 writes them anew; look at the difference before it is
// committed.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

#include "tests/harness/paths.h"

namespace ccom {

// file: its name in tests/golden.
inline void expect_golden(const std::string& file, const std::string& text) {
  const std::filesystem::path path = source_dir() / "tests/golden" / file;
  if (std::getenv("CCOM_UPDATE_GOLDEN") != nullptr) std::ofstream(path, std::ios::binary) << text;
  std::ifstream stream(path, std::ios::binary);
  ASSERT_TRUE(stream) << path << " is missing; CCOM_UPDATE_GOLDEN=1 writes it";
  std::stringstream golden;
  golden << stream.rdbuf();
  EXPECT_EQ(text, golden.str()) << path << " differs; CCOM_UPDATE_GOLDEN=1 rewrites it";
}

}  // namespace ccom
