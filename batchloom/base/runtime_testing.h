// SPDX-License-Identifier: Apache-2.0
// What every Runtime must do, as one suite. A Runtime's own test instantiates it:
//
//   INSTANTIATE_TEST_SUITE_P(Real, RuntimeTest, testing::Values(RuntimeHost{...}), host_name);
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <ostream>
#include <string>

#include "batchloom/base/runtime.h"

namespace batchloom {

/// A way to run code on one kind of Runtime.
struct RuntimeHost {
  std::string name;
  /// Calls its argument, on whatever thread the Runtime's calls are allowed, and returns after it.
  std::function<void(const std::function<void(Runtime&)>&)> run;
};

inline void PrintTo(const RuntimeHost& host, std::ostream* out) {
  *out << host.name;
}

/// The instantiation's name generator.
std::string host_name(const testing::TestParamInfo<RuntimeHost>& host);

/// One wait that no order depends on: the baton of a simulated world is given back at least once.
inline Status yield(Runtime& runtime) {
  return runtime.sleep_until({.deadline = runtime.now() + std::chrono::nanoseconds(1)});
}

class RuntimeTest : public testing::TestWithParam<RuntimeHost> {
 protected:
  void run(const std::function<void(Runtime&)>& body) { GetParam().run(body); }
};

}  // namespace batchloom
