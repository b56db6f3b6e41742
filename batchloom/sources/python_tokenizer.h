// SPDX-License-Identifier: Apache-2.0
// Ids by a function of Python, in processes of its own.
//
// A worker is a process that python_worker.py is. Its channel carries frames, little-endian: u32
// size, then that many bytes. It begins with a reply of no records, when the function is there;
// from then on each request has a reply, and after one that is not good it ends.
//
//   request   u8 has_answers, u32 records; of each record: its text, or prompt and answer
//   text      u32 size, UTF-8
//   reply     u8 outcome: 0 good, 1 wrong (the function is), 2 storage, 3 memory
//     good    of each record: u8 what
//               0 ids, 1 ids and mask: u32 count, count * i32, of a mask count * u8
//               2 bad: text
//               3 bad id: u32 its number, text of the id
//     else    u32 the record's number in the batch, or 2^32 - 1; text
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "batchloom/base/runtime.h"
#include "batchloom/base/status.h"
#include "batchloom/sources/batch_tokenizer.h"

namespace batchloom::sources {

/// The longest text that is given to a function: what it takes in memory is for nobody to know.
inline constexpr std::uint64_t kMaxPythonBytes = std::uint64_t{16} << 20;

/// A function, and what its files hold.
struct PythonFunction {
  std::string name;    ///< "module:function"; the module may have dots.
  std::string folder;  ///< Comes first in sys.path.
  /// Of all that is said to decide its ids: its source, for one.
  std::uint64_t digest = 0;
};

struct PythonOptions {
  /// Empty: $BATCHLOOM_PYTHON, or python3 where that is not set.
  std::string python = {};
  /// For one batch, and for the function to be imported. After it a worker counts as hanging.
  Duration max_time = std::chrono::minutes(10);
  /// Where a user sets that, for the error of a worker that hangs; empty: nowhere.
  std::string max_time_option = {};
};

/// Ok, or `invalid`: no "module:function" whose names are ones of Python.
Status check_function_name(std::string_view name);

/// Text by `function`. Starts nothing. `invalid`: as check_token_settings() and
/// check_function_name().
///
/// Encoding: `invalid` where there is no such Python, it cannot import the function, or the
/// function returns something else than it should; `unavailable` where a worker ends, is killed or
/// hangs, or the function meets an error of the system; `exhausted` where it has no memory. All
/// other exceptions make a record a bad one: a batch that raises is encoded again, each record
/// alone.
Result<std::unique_ptr<Tokenizer>> make_python_tokenizer(TokenSettings settings,
                                                         PythonFunction function,
                                                         PythonOptions options = {});

}  // namespace batchloom::sources
