// SPDX-License-Identifier: Apache-2.0
#include "batchloom/base/real_runtime.h"

#include "batchloom/base/runtime_testing.h"

namespace batchloom {
namespace {

void run_on_real_runtime(const std::function<void(Runtime&)>& body) {
  const auto runtime = make_real_runtime();
  body(*runtime);
}

INSTANTIATE_TEST_SUITE_P(Real, RuntimeTest,
                         testing::Values(RuntimeHost{"threads", run_on_real_runtime}), host_name);

}  // namespace
}  // namespace batchloom
