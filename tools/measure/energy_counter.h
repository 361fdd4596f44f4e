// Sums up a counter of energy that begins again at 0 above some value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "measure/measured.h"

namespace weft::measure {

class EnergyCounter {
 public:
  // `range`: the highest value before it begins again; 0: it never does. `joules`: of one count.
  EnergyCounter(uint64_t range, double joules) : range_(range), joules_(joules) {}

  // A reading at `now_s`. Two of them have to be so close that between them the counter cannot have
  // come round and passed its old value, at kMostWatts; else, and when a reading fails, there is no
  // sum until reset().
  void add(double now_s, const Measured<uint64_t>& reading);
  void reset();

  // From the first reading to the last one. A counter that stood still measures nothing: guests
  // and processors without the domain show one.
  Measured<double> joules() const;
  double seconds() const { return last_s_ - begun_s_; }
  // Between the last two readings.
  Measured<double> watts() const;

  // More than any socket of today takes.
  static constexpr double kMostWatts = 1000;

 private:
  Measured<double> moved(double joules, double span_s) const;

  uint64_t range_;
  double joules_;
  std::optional<Unmeasured> failed_;
  std::optional<uint64_t> last_;
  double begun_s_ = 0;
  double last_s_ = 0;
  double step_s_ = 0;
  uint64_t sum_ = 0;   // counts
  uint64_t step_ = 0;  // counts between the last two readings
};

}  // namespace weft::measure
