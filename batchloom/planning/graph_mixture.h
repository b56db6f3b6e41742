// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "batchloom/base/status.h"
#include "batchloom/planning/graph_spec.h"
#include "batchloom/planning/metadata.h"

namespace batchloom::planning {

/// The mixture of these sources, which keep their order: a source's id is its place in metadata,
/// wherever the mix names it. `invalid`: a name that metadata does not have; a source that the mix
/// does not name; as check_config().
Result<MixtureConfig> mixture_config(const MixSpec& mix, std::span<const SourceRecords> sources);

}  // namespace batchloom::planning
