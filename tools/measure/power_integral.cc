#include "measure/power_integral.h"

#include <algorithm>

namespace weft::measure {

void PowerIntegral::add(double now_s, const Measured<double>& watts) {
  if (failed_) return;
  if (!watts) {
    failed_ = watts.error();
    return;
  }
  if (!last_) begun_s_ = now_s;
  if (last_) joules_ += (*last_ + *watts) / 2 * (now_s - last_s_);
  last_ = *watts;
  last_s_ = now_s;
  until_s_ = now_s;
}

void PowerIntegral::extend(double now_s) {
  until_s_ = std::max(until_s_, now_s);
}

Measured<double> PowerIntegral::joules() const {
  auto last = watts();
  if (!last) return last;
  return joules_ + *last * (until_s_ - last_s_);
}

Measured<double> PowerIntegral::watts() const {
  if (failed_) return fail(*failed_);
  if (!last_) return fail(Unmeasured{"it was not read", "measure for longer"});
  if (*last_ <= 0) {
    return fail(Unmeasured{"the meter says that no power is taken",
                           "take another source (--energy); this meter does not work"});
  }
  return *last_;
}

}  // namespace weft::measure
