// The figures that results have: their names, units and meaning, and which way is better.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weft::bench {

struct FigureKind {
  enum class Better : uint8_t { larger, smaller };

  std::string_view name;
  std::string_view unit;
  Better better;
  std::string_view meaning;
};

std::span<const FigureKind> figure_kinds();
// nullptr: there is none of this name.
const FigureKind* find_figure(std::string_view name);
std::vector<std::string> figure_names();

}  // namespace weft::bench
