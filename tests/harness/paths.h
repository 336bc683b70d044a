// SPDX-License-Identifier: Apache-2.0
//
// Where a test program finds the sources, the build and the programs that it starts. None of these paths is compiled
// into it: ctest gives them in the environment. A program that was started by hand looks for the build folder around
// itself.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace ccom {

[[noreturn]] inline void end_without_path(const std::string& reason) {
  std::fprintf(stderr, "%s; ctest sets CCOM_SOURCE_DIR, CCOM_BINARY_DIR and CCOM_TEST_PROGRAMS\n", reason.c_str());
  std::exit(2);
}

// CCOM_BINARY_DIR, or the folder above this program in which CMake was run.
inline std::filesystem::path binary_dir() {
  if (const char* const given = std::getenv("CCOM_BINARY_DIR")) return given;
  std::filesystem::path folder = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  while (!std::filesystem::exists(folder / "CMakeCache.txt")) {
    if (!folder.has_relative_path()) end_without_path("this program lies in no build folder");
    folder = folder.parent_path();
  }
  return folder;
}

// CCOM_SOURCE_DIR, or what CMake was run for.
inline std::filesystem::path source_dir() {
  if (const char* const given = std::getenv("CCOM_SOURCE_DIR")) return given;
  const std::string key = "CMAKE_HOME_DIRECTORY:INTERNAL=";
  std::ifstream cache(binary_dir() / "CMakeCache.txt");
  for (std::string line; std::getline(cache, line);) {
    if (line.starts_with(key)) return line.substr(key.size());
  }
  end_without_path("the build folder does not say where the sources are");
}

// The file of that name that the test's target lists (PROGRAMS in its CMakeLists.txt). A path is itself.
inline std::string program(const std::string& name) {
  if (name.starts_with('/')) return name;
  if (const char* const given = std::getenv("CCOM_TEST_PROGRAMS")) {
    std::istringstream paths(given);
    for (std::string path; std::getline(paths, path, ':');) {
      if (std::filesystem::path(path).filename() == name) return path;
    }
    end_without_path(name + " is not in CCOM_TEST_PROGRAMS");
  }
  for (const auto& entry : std::filesystem::recursive_directory_iterator(binary_dir())) {
    if (entry.path().filename() == name && entry.is_regular_file()) return entry.path();
  }
  end_without_path("the build folder has no " + name);
}

}  // namespace ccom
