// SPDX-License-Identifier: Apache-2.0
//
// A locale in which printf writes "0,5", as programs choose it by setlocale(LC_ALL, "").
#pragma once

#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "tests/harness/folder.h"

namespace ccom {

// Of the process, as long as the object exists.
class GermanLocale {
 public:
  GermanLocale() {
    const std::string command = "localedef --no-archive -i de_DE -f UTF-8 " + (folder_ / "de_DE.UTF-8");
    ::setenv("LOCPATH", folder_.path().c_str(), 1);
    const bool is_made = std::system(command.c_str()) == 0 && std::setlocale(LC_ALL, "de_DE.UTF-8") != nullptr;
    char text[8];
    std::snprintf(text, sizeof text, "%.1f", 0.5);
    if (!is_made || std::string(text) != "0,5") std::abort();  // Debian's package is `locales`
  }
  ~GermanLocale() {
    std::setlocale(LC_ALL, "C");
    ::unsetenv("LOCPATH");
  }
  GermanLocale(const GermanLocale&) = delete;
  GermanLocale& operator=(const GermanLocale&) = delete;

 private:
  const TemporaryFolder folder_;
};

}  // namespace ccom
