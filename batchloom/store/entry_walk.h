// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "batchloom/store/segment_reader.h"

namespace batchloom::store {

/// Calls `visit`, in step order, for every entry of `head` that ends above `from`, and for those
/// that do not but stand in one segment with such, or in the tail. Segments wholly below `from` are
/// not loaded, all others are. Ends early with an error of `visit` or of a load.
Status for_each_entry(SegmentReader& segments, const Head& head, Step from, const CallOptions& call,
                      const std::function<Status(const Entry&)>& visit);

}  // namespace batchloom::store
