// SPDX-License-Identifier: Apache-2.0
// One stream: an object store's folder with a FORMAT, a manifest and what it names.
#pragma once

#include <memory>

#include "batchloom/base/metrics.h"
#include "batchloom/base/runtime.h"
#include "batchloom/objstore/object_store.h"
#include "batchloom/store/codec.h"
#include "batchloom/store/limits.h"
#include "batchloom/store/safeguards.h"

namespace batchloom::store {

/// What a process brings along to work on streams. Everything referred to must outlive the stream.
/// `objects` should retry reads by itself (objstore::RetryingStore).
struct StreamDeps {
  Runtime& runtime;
  objstore::ObjectStore& objects;
  Counters& counters;
};

struct StreamOptions {
  Limits limits = {};
  Safeguards safeguards = {};
  /// Opens a stream whose floor is lost, damaged or another stream's, too: to see what is left.
  bool even_damaged = false;
};

/// An opened stream: its identity and the components that work on it. Immutable; thread-safe.
class Stream {
 public:
  /// Reads FORMAT and the floor, so that nothing begins on a stream whose parts are not of one
  /// whole. `not_found` where there is no stream, or one whose init has not ended; `invalid` for
  /// limits that cannot work; `corruption` and `invalid` as decode_format(); `corruption` as
  /// check_floor().
  static Result<std::unique_ptr<Stream>> open(const StreamDeps& deps, const StreamOptions& options,
                                              const CallOptions& call);

  Runtime& runtime() const { return deps_.runtime; }
  objstore::ObjectStore& objects() const { return deps_.objects; }
  Counters& counters() const { return deps_.counters; }
  const StreamFormat& format() const { return format_; }
  const StreamUuid& uuid() const { return format_.uuid; }
  const Limits& limits() const { return options_.limits; }
  const Safeguards& safeguards() const { return options_.safeguards; }

  Txid random_txid() const;
  Nonce random_nonce() const { return Nonce(runtime().random()); }

 private:
  Stream(const StreamDeps& deps, const StreamOptions& options, StreamFormat format)
      : deps_(deps), options_(options), format_(std::move(format)) {}

  StreamDeps deps_;
  StreamOptions options_;
  StreamFormat format_;
};

/// FORMAT. `not_found` where there is none.
Result<StreamFormat> read_format(objstore::ObjectStore& objects, const CallOptions& call);

struct InitResult {
  StreamUuid uuid;
  bool created = false;  ///< False where the stream was there already.
};

/// Makes a stream where there is none: FORMAT decides its uuid, then come genesis (slot 1) and the
/// floor. Safe to race and to repeat: an interrupted init is completed. `corruption` where a FORMAT
/// stands beside slots without a floor.
Result<InitResult> init_stream(const StreamDeps& deps, std::string_view created_by,
                               const CallOptions& call);

}  // namespace batchloom::store
