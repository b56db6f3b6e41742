// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>

#include "batchloom/store/stream.h"

namespace batchloom::store {

/// Puts an object under a key that only this call's caller can be using (it carries a fresh nonce),
/// and repeats until it is surely there. "Taken" is then an earlier attempt of our own; its size is
/// compared. Errors: those of the store; the object may then exist or come to exist, as an orphan.
Status upload_unique(const Stream& stream, std::string_view key, std::span<const ByteSpan> parts,
                     const CallOptions& call);

}  // namespace batchloom::store
