// How figures are made from repetitions: medians with their spread, and ratios between cases of the
// same repetition, which noise of the machine hits alike.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace weft::bench {

// One figure of one case, by repetition; nothing where the repetition failed.
using Series = std::vector<std::optional<double>>;

struct Spread {
  double median = 0;
  double min = 0;
  double max = 0;
  friend bool operator==(const Spread&, const Spread&) = default;
};

// Of the values that are there; nothing when there is none. The median of an even number of values
// is the mean of the middle two.
std::optional<Spread> spread_of(const Series& series);

// `series` / `baseline`, repetition by repetition. Nothing where one is missing or the baseline is
// 0. As long as the shorter one.
Series ratios(const Series& series, const Series& baseline);

// a + b, repetition by repetition.
Series sums(const Series& a, const Series& b);

// The smallest value that `share` (0 to 1) of the values do not exceed. `sorted` is ascending and
// not empty.
double percentile(std::span<const double> sorted, double share);

}  // namespace weft::bench
