// SPDX-License-Identifier: Apache-2.0
//
// What tests of users' operators share: the operator, and communicators of many forms.
#pragma once

#include <gtest/gtest.h>

#include <cstring>

#include "tests/api/affine.h"
#include "tests/api/worlds.h"
