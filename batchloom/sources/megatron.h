// SPDX-License-Identifier: Apache-2.0
// Megatron's data sets: ids in a .bin file, lengths and places in an .idx file. A record is a
// document: its sequences, joined. docs/formats/megatron.md has the bytes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "batchloom/base/runtime.h"
#include "batchloom/base/status.h"
#include "batchloom/sources/byte_reader.h"
#include "batchloom/sources/shard_reader.h"
#include "batchloom/sources/tokenizer.h"

namespace batchloom::sources {

/// The two files of one data set.
struct MegatronPaths {
  std::string data;   ///< .bin
  std::string index;  ///< .idx
};

/// From the path of either. `invalid` for one that ends in neither .bin nor .idx.
Result<MegatronPaths> megatron_paths(const std::string& path);

struct MegatronFiles {
  std::unique_ptr<ByteReader> data;
  std::unique_ptr<ByteReader> index;
};

/// Reads some 100 bytes of the index: the head, and the ends of its lists. A record's own entries
/// are looked at whenever it is read; MegatronIndex::scan() looks at all of them. `corruption`:
/// docs/formats/megatron.md lists what is a fault of the shard. `tokenizer` gives the vocabulary
/// and the ids around each record, and must outlive the reader.
Result<std::unique_ptr<ShardReader>> open_megatron(MegatronFiles files, const ReadLimits& limits,
                                                   const Tokenizer& tokenizer,
                                                   const CallOptions& call);

}  // namespace batchloom::sources
