// SPDX-License-Identifier: Apache-2.0
//
// A static object that is made when the library is loaded and outlives every other one: threads and users' buffers may
// need it while static objects are destroyed.
#pragma once

namespace ccom {

template <typename T>
union NeverDestroyed {
  T value;
  NeverDestroyed() : value() {}
  ~NeverDestroyed() {}
};

}  // namespace ccom
