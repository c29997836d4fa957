#include <algorithm>
#include <cmath>
#include <limits>

#include "crfx/bins.hpp"

namespace crfx {

// A number above a and not above b: the midpoint, if it is such a number.
float Cutting::between(float a, float b) {
  if (a == -std::numeric_limits<float>::infinity())  // "outside" is below all numbers
    return -std::numeric_limits<float>::max();
  const float middle = a + (b - a) / 2;
  return middle > a && middle <= b ? middle : b;
}

void Cutting::guess(double n_rows) {
  while (n_rows > 0 && asks(n_rows)) {
    if (is_due()) {
      cut(0);
    } else {
      const double step = std::max(1.0, std::ceil(share() - filled_));
      filled_ += step;
      n_rows -= step;
    }
  }
  filled_ += n_rows;
}

std::vector<float> find_cuts(std::vector<float> values) {
  std::sort(values.begin(), values.end());
  size_t n_distinct = 0;
  for (size_t k = 0; k < values.size(); ++k) n_distinct += k == 0 || values[k] != values[k - 1];
  Cutting cutting(static_cast<double>(values.size()), n_distinct <= kMostBins);
  for (size_t begin = 0, end = 0; begin < values.size(); begin = end) {
    while (end < values.size() && values[end] == values[begin]) ++end;
    cutting.add(values[begin], static_cast<double>(end - begin));
  }
  return std::move(cutting.cuts);
}

}  // namespace crfx
