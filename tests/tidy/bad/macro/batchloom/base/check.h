// SPDX-License-Identifier: Apache-2.0
#pragma once
#define BL_CHECK(condition) check(condition)
