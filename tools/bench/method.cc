#include "bench/method.h"

#include <algorithm>
#include <cmath>

namespace weft::bench {
namespace {

template <class Combine>
Series combine(const Series& a, const Series& b, Combine&& f) {
  Series result(std::min(a.size(), b.size()));
  for (size_t i = 0; i < result.size(); ++i) {
    if (a[i] && b[i]) result[i] = f(*a[i], *b[i]);
  }
  return result;
}

}  // namespace

std::optional<Spread> spread_of(const Series& series) {
  std::vector<double> values;
  for (const auto& v : series) {
    if (v) values.push_back(*v);
  }
  if (values.empty()) return std::nullopt;
  std::sort(values.begin(), values.end());
  const size_t half = values.size() / 2;
  const double median =
      values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
  return Spread{.median = median, .min = values.front(), .max = values.back()};
}

Series ratios(const Series& series, const Series& baseline) {
  return combine(series, baseline, [](double a, double b) -> std::optional<double> {
    if (b == 0) return std::nullopt;
    return a / b;
  });
}

Series sums(const Series& a, const Series& b) {
  return combine(a, b, [](double x, double y) { return x + y; });
}

double percentile(std::span<const double> sorted, double share) {
  const double rank = std::ceil(share * static_cast<double>(sorted.size()));
  const auto last = static_cast<double>(sorted.size() - 1);
  return sorted[static_cast<size_t>(std::clamp(rank - 1, 0.0, last))];
}

}  // namespace weft::bench
