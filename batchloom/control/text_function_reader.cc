// SPDX-License-Identifier: Apache-2.0
#include "batchloom/control/text_function_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "batchloom/base/hash.h"
#include "batchloom/sources/python_tokenizer.h"

namespace batchloom::control {
namespace {

std::string folder_of(const std::string& file) {
  const std::size_t slash = file.rfind('/');
  return slash == std::string::npos ? "." : file.substr(0, slash + 1);
}

/// "a.b" lies in a/b.py, or in a/b/__init__.py.
Result<std::string> read_module(std::string module, const SourceContext& context) {
  std::ranges::replace(module, '.', '/');
  const std::string path = path_beside(context.file, module + ".py");
  auto source = context.inputs.read(path);
  if (!source.is(ErrorKind::kNotFound)) return source;
  source = context.inputs.read(path_beside(context.file, module + "/__init__.py"));
  if (!source.is(ErrorKind::kNotFound)) return source;
  return Status::not_found(
      fmt::format("{}: there is no such file; the module lies beside the pipeline's file, and may "
                  "import what is installed",
                  path));
}

void read_module_of(TableReader& table, const SourceContext& context, TextFunction& function) {
  const Status name = sources::check_function_name(function.name);
  if (!name.is_ok()) return table.fault("function", name.message());
  const auto source = read_module(function.name.substr(0, function.name.find(':')), context);
  if (!source.is_ok()) return table.fault("function", source.status().message());
  function.source_bytes = source->size();
  function.source_digest = xxh3_64(as_bytes(*source));
}

void read_files_of(TableReader& table, const TomlNode& files, const SourceContext& context,
                   TextFunction& function) {
  Digest digest;
  for (const TomlNode& file : files.items) {
    if (!file.is(TomlType::kText)) {
      table.fault_at(file, "files",
                     fmt::format("a file is expected, not {}", to_string(file.type)));
      continue;
    }
    function.files.push_back(file.text);
    const auto content = context.inputs.read(path_beside(context.file, file.text));
    if (!content.is_ok()) {
      table.fault_at(file, "files", content.status().message());
      continue;
    }
    function.files_bytes += content->size();
    digest.add_text(*content);
  }
  if (!function.files.empty()) function.files_digest = digest.value();
}

}  // namespace

void read_text_function(TableReader& table, const SourceContext& context, TokensConfig& tokens) {
  const bool is_wanted = tokens.tokenizer == TokenizerKind::kPython;
  TextFunction function{.folder = folder_of(context.file)};
  if (is_wanted) table.need("function");
  table.text("function", function.name);
  const TomlNode* files = table.find("files");
  if (!table.has("kind")) return;
  if (is_wanted) {
    if (!function.name.empty()) read_module_of(table, context, function);
    if (files != nullptr) read_files_of(table, *files, context, function);
    tokens.function = std::move(function);
    return;
  }
  for (const char* key : {"function", "files"}) {
    if (table.has(key)) table.fault(key, "is of kind = \"python\" alone");
  }
}

}  // namespace batchloom::control
