#include "measure/energy_counter.h"

#include <fmt/format.h>

namespace weft::measure {

void EnergyCounter::add(double now_s, const Measured<uint64_t>& reading) {
  if (failed_) return;
  if (!reading) {
    failed_ = reading.error();
    return;
  }
  if (!last_) {
    begun_s_ = now_s;
  } else {
    step_s_ = now_s - last_s_;
    const double most = step_s_ * kMostWatts;
    if (range_ != 0 && most >= static_cast<double>(range_) * joules_) {
      failed_ = Unmeasured{
          fmt::format("it was not read for {:.3g} s, in which it may have begun anew twice (it "
                      "holds {:.3g} J)",
                      step_s_, static_cast<double>(range_) * joules_),
          "read it more often (--interval), and do not stop or suspend the meter"};
      return;
    }
    if (*reading < *last_ && range_ == 0) {
      failed_ = Unmeasured{"it went back", "measure again"};
      return;
    }
    // Where it begins anew, the step from the highest value to 0 is one count, and is left out: the
    // kernel says the range in microjoules, of which a count of the register is 15 to 61.
    step_ = *reading >= *last_ ? *reading - *last_ : range_ - *last_ + *reading;
    sum_ += step_;
  }
  last_ = *reading;
  last_s_ = now_s;
}

void EnergyCounter::reset() {
  *this = EnergyCounter{range_, joules_};
}

Measured<double> EnergyCounter::joules() const {
  return moved(static_cast<double>(sum_) * joules_, seconds());
}

Measured<double> EnergyCounter::watts() const {
  auto joules = moved(static_cast<double>(step_) * joules_, step_s_);
  if (!joules || step_s_ <= 0) return joules;
  return *joules / step_s_;
}

Measured<double> EnergyCounter::moved(double joules, double span_s) const {
  if (failed_) return fail(*failed_);
  if (joules > 0) return joules;
  return fail(Unmeasured{
      fmt::format("the counter stood still for {:.3g} s", span_s),
      "measure for longer than some milliseconds; on processors and guests that show a counter "
      "without having one, take another source (--energy)"});
}

}  // namespace weft::measure
