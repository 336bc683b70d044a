// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "exploration.h"

namespace ccom::model {

class Exploration::Inside {
 public:
  Inside() { is_in_thread = false; }
  ~Inside() { is_in_thread = true; }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
  static bool is_in_thread;
};

}  // namespace ccom::model
