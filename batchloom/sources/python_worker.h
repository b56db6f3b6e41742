// SPDX-License-Identifier: Apache-2.0
// One process of python_tokenizer.h.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "batchloom/base/child_process.h"
#include "batchloom/base/status.h"
#include "batchloom/sources/python_tokenizer.h"

namespace batchloom::sources {

/// python_worker.py.
std::string_view python_worker_source();

/// One thread at a time. After an error it is of no use any more.
class PythonWorker {
 public:
  /// Does not wait for the function to be imported. `invalid`: there is no such Python.
  static Result<std::unique_ptr<PythonWorker>> start(const PythonFunction& function,
                                                     const PythonOptions& options);

  /// As BatchTokenizer::encode_batch().
  Result<std::vector<EncodedText>> encode(const TextBatch& batch, std::uint32_t vocab,
                                          const CallOptions& call);

 private:
  PythonWorker(const PythonFunction& function, const PythonOptions& options,
               std::unique_ptr<ChildProcess> process)
      : function_(function), options_(options), process_(std::move(process)) {}

  /// A caller's call, or the part of its time that a batch may take.
  struct Limited {
    CallOptions call;
    bool is_part = false;
  };

  Limited within(const CallOptions& call) const;
  /// Of a reply, what follows its outcome; or what that says.
  Result<Bytes> take_reply(const TextBatch& batch, const Limited& limited);
  Status exchange_failed(const Status& why, const Limited& limited) const;
  std::string hangs_text() const;

  const PythonFunction& function_;
  const PythonOptions& options_;
  std::unique_ptr<ChildProcess> process_;
  bool has_begun_ = false;
};

}  // namespace batchloom::sources
