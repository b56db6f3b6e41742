// SPDX-License-Identifier: Apache-2.0
// Samples of a WebDataset tar. docs/formats/webdataset.md says what is read.
//
//  1. A member's base name, up to its first dot, and the folders before it are its key; what stands
//     behind the dot is its extension, with capitals made small.
//  2. Neighbours with one key are one record. One whose key comes again later is another record.
//  3. Folders, and members whose base name has no dot or begins with one, belong to no record and
//     part no neighbours.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "batchloom/base/runtime.h"
#include "batchloom/base/status.h"
#include "batchloom/sources/byte_stream.h"
#include "batchloom/sources/record_offsets.h"
#include "batchloom/sources/tar_archive.h"

namespace batchloom::sources {

struct SampleMember {
  std::string_view key;  ///< Of the member's path.
  std::string extension;
};

/// Nullopt for a member that belongs to no record.
std::optional<SampleMember> sample_member(const TarMember& member);

/// ASCII only, as extensions are compared.
std::string folded(std::string_view extension);

/// Finds the records of a tar in one pass, with memory for a header and 64 KiB. A record's place is
/// from its first member's header to the end of its last member's padding. What members hold is
/// not looked at. Blocks. Errors: those of TarArchive, of `found`, and faults.h.
Status scan_tar(ByteStream& content, const CallOptions& call, const PlaceSink& found);

}  // namespace batchloom::sources
