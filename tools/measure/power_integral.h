// Energy from readings of power.
#pragma once

#include <optional>

#include "measure/measured.h"

namespace weft::measure {

class PowerIntegral {
 public:
  // The power at `now_s`. Between two readings it is taken to go straight from one to the other
  // (trapezoid). After a reading that failed there is no sum until reset().
  void add(double now_s, const Measured<double>& watts);
  // Time has come to `now_s` without a new reading; the last one is taken to hold.
  void extend(double now_s);
  void reset() { *this = PowerIntegral{}; }

  bool empty() const { return !last_; }
  double last_s() const { return last_s_; }
  Measured<double> joules() const;
  // From the first reading on.
  double seconds() const { return until_s_ - begun_s_; }
  // As last read.
  Measured<double> watts() const;

 private:
  std::optional<Unmeasured> failed_;
  std::optional<double> last_;  // watts
  double begun_s_ = 0;
  double last_s_ = 0;
  double until_s_ = 0;
  double joules_ = 0;  // up to last_s_
};

}  // namespace weft::measure
