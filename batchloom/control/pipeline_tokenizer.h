// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "batchloom/base/status.h"
#include "batchloom/control/pipeline_config.h"
#include "batchloom/sources/python_tokenizer.h"
#include "batchloom/sources/tokenizer.h"

namespace batchloom::control {

/// The one that all sources of the stream share. `invalid`: as make_bytes_tokenizer(),
/// make_ids_tokenizer(), make_sentencepiece_tokenizer() and make_python_tokenizer().
Result<std::unique_ptr<sources::Tokenizer>> make_tokenizer(
    const TokensConfig& tokens, const sources::PythonOptions& python = {});

}  // namespace batchloom::control
