// SPDX-License-Identifier: Apache-2.0
// Made by tools/generate_tables.py from batchloom/planning/costs/h200-costs.json:
// edit that file, not this one.
#include "batchloom/planning/measured_costs.h"

namespace batchloom::planning {
namespace {
// clang-format off: a row a line

/// cuDNN, forward and backward.
constexpr CostPoint kH200Attention[] = {
    {512, 198'144'004},
    {1'024, 312'351'994},
    {2'048, 460'543'998},
    {4'096, 1'248'512'000},
    {8'192, 3'587'616'086},
    {16'384, 13'929'376'125},
    {32'768, 56'042'783'737},
    {65'536, 220'873'241'425},
    {131'072, 907'049'606'323},
};

/// cuDNN, forward.
constexpr CostPoint kH200AttentionForward[] = {
    {512, 33'472'002},
    {1'024, 51'711'999},
    {2'048, 104'704'000},
    {4'096, 315'008'014},
    {8'192, 909'376'025},
    {16'384, 3'370'399'952},
    {32'768, 14'783'136'368},
    {65'536, 57'952'800'751},
    {131'072, 251'981'185'913},
};

/// Forward and backward.
constexpr CostPoint kH200Linear[] = {
    {512, 1'816'671'968},
    {1'024, 2'448'575'974},
    {2'048, 4'065'695'763},
    {4'096, 8'279'935'837},
    {8'192, 15'862'655'640},
    {16'384, 31'409'215'927},
    {32'768, 62'586'238'861},
};

/// Forward.
constexpr CostPoint kH200LinearForward[] = {
    {512, 364'735'991},
    {1'024, 690'752'029},
    {2'048, 1'318'560'004},
    {4'096, 2'628'256'083},
    {8'192, 5'100'480'080},
    {16'384, 10'559'328'079},
    {32'768, 23'056'095'123},
};

// clang-format on
}  // namespace

const MeasuredCosts kH200Llama7bCosts = {
    .attention = kH200Attention,
    .attention_forward = kH200AttentionForward,
    .linear = kH200Linear,
    .linear_forward = kH200LinearForward,
    .copy_bytes_per_s = 55'160'087'572,
};

}  // namespace batchloom::planning
