// SPDX-License-Identifier: Apache-2.0
// libarchive behind a type of ours: only tar_archive.cc includes it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "batchloom/base/bytes.h"
#include "batchloom/base/runtime.h"
#include "batchloom/base/status.h"
#include "batchloom/sources/byte_stream.h"

namespace batchloom::sources {

enum class TarMemberKind : std::uint8_t {
  kFile,
  kFolder,
  kOther,  ///< A link, a device, a pipe.
};

struct TarMember {
  std::string path;  ///< The bytes that the tar has, whatever the host's locale.
  TarMemberKind kind = TarMemberKind::kFile;
  std::uint64_t size_bytes = 0;     ///< Of what read() gives.
  std::uint64_t header_offset = 0;  ///< Of its first header: that of pax, or of a long name.
};

enum class TarExtent : std::uint8_t {
  /// The archive must end with its mark, and nothing but zeros may follow: else it was cut, or
  /// holds members that nobody would see.
  kWhole,
  kMembers,  ///< Some whole members of one; no mark.
};

/// The members of a tar (ustar, pax, GNU), one after another. Of data that nobody reads, nothing is
/// read where the stream can skip. Holds 64 KiB and a header. One thread at a time.
class TarArchive {
 public:
  /// `content` outlives it, and begins at byte `offset` of what errors call it. No I/O.
  /// `exhausted`: there is no memory.
  static Result<std::unique_ptr<TarArchive>> open(ByteStream& content, TarExtent extent,
                                                  std::uint64_t offset = 0);
  ~TarArchive();

  /// The next member; nullopt behind the last. `corruption`, at an offset, for what is no member:
  /// a header whose checksum is wrong, an archive that was cut. Else as the stream.
  Result<std::optional<TarMember>> next(const CallOptions& call);

  /// Fills `out` with the data of the member that next() has given, `padding_bytes` of zeros
  /// behind it; once. Errors as next().
  Status read(const TarMember& member, std::size_t padding_bytes, Bytes& out,
              const CallOptions& call);

  /// Where the member before ends, with its padding: at the next header or the mark.
  std::uint64_t offset() const;

 private:
  class Feed;
  class Libarchive;
  explicit TarArchive(std::unique_ptr<Libarchive> libarchive);

  std::unique_ptr<Libarchive> libarchive_;
};

}  // namespace batchloom::sources
