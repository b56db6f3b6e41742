// SPDX-License-Identifier: Apache-2.0
// The conformance suite's checks of listings.
#pragma once

#include "batchloom/objstore/conformance_testing.h"

namespace batchloom::objstore {

/// '-' and '.' sort before '/', so a store that walks folders gets these wrong.
void list_prefixes(CheckRun& run);

/// Only keys above `start_after`, which need not exist.
void list_start_after(CheckRun& run);

/// More keys than a page holds.
void list_pages(ConformanceFixture& fixture);

/// Between two pages keys come and go, and objects are replaced. What stays throughout must be
/// shown, and nothing twice.
void list_while_changing(ConformanceFixture& fixture);

}  // namespace batchloom::objstore
