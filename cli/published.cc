// SPDX-License-Identifier: Apache-2.0
#include "cli/published.h"

#include <fmt/format.h>

namespace batchloom::cli {
namespace {

constexpr Paper kByteScale = {.name = "ByteScale (arXiv 2502.21231)",
                              .conditions =
                                  "    text, on 1,024 GPUs and more whose links it does not state; "
                                  "over its own static groups;\n"
                                  "    other data of the same shape"};
constexpr Paper kMegaScaleData = {
    .name = "MegaScale-Data (arXiv 2504.09844)",
    .conditions =
        "    the largest of its end-to-end gains over no balance: vision-language models, whose\n"
        "    encoder is loaded unevenly, on up to thousands of GPUs. Lengths have no pictures,\n"
        "    and with groups as large as a long context needs there is little to balance"};

constexpr std::uint32_t k2M = std::uint32_t{2} << 20;
constexpr std::string_view kByted = "byted-like";
constexpr std::string_view kGithub = "github-like";
constexpr std::string_view kStatic = "static_cp";
// ByteScale: ablation (7B, 2M, 1,024 GPUs) and figure 17 ("up to"). Its balance is DP-Balance, with
// stages PP-Balance. MegaScale-Data: abstract ("up to"). Its balance over buckets, then over
// micro-batches, is two_level without pictures.
constexpr PaperRatio kRatios[] = {
    {&kByteScale, "naive_hdp", kStatic, kByted, k2M, "1.59 to 2.01"},
    {&kByteScale, "dp_balance", kStatic, kByted, k2M, "3.69 to 4.26"},
    {&kByteScale, "dp_balance", kStatic, kGithub, k2M, "up to 7.89"},
    {&kByteScale, "pp_balance", kStatic, kGithub, k2M, "3.42 to 4.28"},
    {&kMegaScaleData, "two_level", "none", "", 0, "up to 4.5"}};

}  // namespace

std::span<const PaperRatio> paper_ratios() {
  return kRatios;
}

const PaperRatio* find_paper_ratio(std::string_view lengths, std::uint32_t context_tokens,
                                   std::string_view strategy) {
  for (const PaperRatio& ratio : kRatios) {
    if (ratio.strategy != strategy) continue;
    if (!ratio.lengths.empty() && ratio.lengths != lengths) continue;
    if (ratio.context_tokens != 0 && ratio.context_tokens != context_tokens) continue;
    return &ratio;
  }
  return nullptr;
}

std::string to_string(const PaperRatio* ratio) {
  return ratio == nullptr ? "" : fmt::format("{} over {}", ratio->ratio, ratio->over);
}

std::string papers_text() {
  std::string text;
  for (const Paper* paper : {&kByteScale, &kMegaScaleData}) {
    text += fmt::format("  {}\n{}\n", paper->name, paper->conditions);
  }
  return text;
}

}  // namespace batchloom::cli
