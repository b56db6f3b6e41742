// SPDX-License-Identifier: Apache-2.0
#include "batchloom/control/source_files.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "batchloom/control/pipeline_faults.h"
#include "batchloom/sources/megatron.h"
#include "batchloom/sources/parquet_reader.h"

namespace batchloom::control {
namespace {

// By the longest suffix first, where one ends with another.
constexpr std::array kFormats = {
    KnownFormat{"jsonl", ".jsonl", SourceFormat::kJsonl},
    KnownFormat{"jsonl", ".jsonl.gz", SourceFormat::kJsonl},
    KnownFormat{"jsonl", ".jsonl.zst", SourceFormat::kJsonl},
    KnownFormat{"megatron", ".bin", SourceFormat::kMegatron},
    KnownFormat{"megatron", ".idx", SourceFormat::kMegatron},
    KnownFormat{"parquet", ".parquet", SourceFormat::kParquet},
    KnownFormat{"tar", ".tar", SourceFormat::kTar},
    KnownFormat{"tar", ".tar.gz", SourceFormat::kTar},
    KnownFormat{"tar", ".tar.zst", SourceFormat::kTar},
    KnownFormat{"text", ".txt", SourceFormat::kText},
    KnownFormat{"text", ".txt.gz", SourceFormat::kText},
    KnownFormat{"text", ".txt.zst", SourceFormat::kText},
    KnownFormat{"text", ".md", SourceFormat::kText},
    KnownFormat{"arrow", ".arrow", std::nullopt},
    KnownFormat{"mds", ".mds", std::nullopt},
};

Result<SourceFormat> told_format(std::optional<SourceFormat> given, const std::string& path) {
  const KnownFormat* known = format_of_path(path);
  if (known == nullptr) {
    if (given && *given != SourceFormat::kMegatron) return *given;
    return Status::invalid(
        given ? fmt::format("{} does not end in .bin or .idx, and format is \"megatron\"",
                            shown(path))
              : fmt::format(
                    "the name of {} tells no format; say it: format = \"jsonl\", or one of {}",
                    shown(path), built_formats()));
  }
  if (!known->built) {
    return Status::invalid(fmt::format("{} is {}, which is not built yet; there are {}",
                                       shown(path), known->name, built_formats()));
  }
  if (given && *given != *known->built) {
    return Status::invalid(fmt::format("{} is {} by its name, and format is \"{}\"", shown(path),
                                       known->name, to_string(*given)));
  }
  return *known->built;
}

Result<SourceFormat> format_of_file(std::optional<SourceFormat> given, const std::string& path) {
  BL_ASSIGN_OR_RETURN(const SourceFormat format, told_format(given, path));
  if (format == SourceFormat::kParquet) {
    const Status built = sources::parquet_is_built();
    if (!built.is_ok()) return built.with_context(shown(path));
  }
  return format;
}

}  // namespace

std::span<const KnownFormat> known_formats() {
  return kFormats;
}

std::string_view to_string(SourceFormat format) {
  switch (format) {
    case SourceFormat::kJsonl: return "jsonl";
    case SourceFormat::kMegatron: return "megatron";
    case SourceFormat::kParquet: return "parquet";
    case SourceFormat::kTar: return "tar";
    case SourceFormat::kText: return "text";
  }
  return "unknown";
}

std::string built_formats() {
  std::vector<std::string_view> names;
  for (const KnownFormat& format : kFormats) {
    const bool told = std::ranges::find(names, format.name) != names.end();
    if (format.built && !told) names.push_back(format.name);
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

const KnownFormat* format_of_path(std::string_view path) {
  const auto found = std::ranges::find_if(
      kFormats, [&](const KnownFormat& format) { return path.ends_with(format.suffix); });
  return found == kFormats.end() ? nullptr : &*found;
}

const KnownFormat* format_of_name(std::string_view name) {
  const auto found = std::ranges::find(kFormats, name, &KnownFormat::name);
  return found == kFormats.end() ? nullptr : &*found;
}

Result<std::vector<std::string>> files_to_read(SourceFormat format,
                                               std::span<const MatchedFiles> matched) {
  std::vector<std::string> files;
  std::map<std::string_view, const MatchedFiles*> seen;
  std::map<std::string, const MatchedFiles*> taken;
  for (const MatchedFiles& match : matched) {
    for (const std::string& path : match.paths) {
      const auto [twice, is_new] = seen.emplace(path, &match);
      if (!is_new) {
        return Status::invalid(
            fmt::format("{} is matched by {} and again by {}; its records would "
                        "come twice",
                        shown(path), shown(twice->second->pattern), shown(match.pattern)));
      }
      std::string file = path;
      if (format == SourceFormat::kMegatron) {
        BL_ASSIGN_OR_RETURN(sources::MegatronPaths pair, sources::megatron_paths(path));
        file = std::move(pair.data);
      }
      if (taken.emplace(file, &match).second) files.push_back(std::move(file));
    }
  }
  return files;
}

Result<SourceFormat> common_format(std::optional<SourceFormat> given,
                                   std::span<const MatchedFiles> matched) {
  std::optional<SourceFormat> common = given;
  const std::string* first = nullptr;
  for (const MatchedFiles& match : matched) {
    for (const std::string& path : match.paths) {
      BL_ASSIGN_OR_RETURN(const SourceFormat format, format_of_file(given, path));
      if (first == nullptr) first = &path;
      if (common && *common != format) {
        return Status::invalid(fmt::format("{} is {}, and {} is {}; a source has one format",
                                           shown(*first), to_string(*common), shown(path),
                                           to_string(format)));
      }
      common = format;
    }
  }
  return common.value_or(SourceFormat::kJsonl);
}

}  // namespace batchloom::control
