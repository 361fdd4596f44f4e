// Tells the peer what it may not do (ERR, spec/wdp 5.3, spec/wdp-uc 3.9). Nothing ends over it.
#pragma once

#include "wire/terminate.h"
#include "wire/wdp_data.h"

namespace weft::wdp {

class ErrorReporter {
 public:
  virtual ~ErrorReporter() = default;
  // `about`: the header that was wrong.
  virtual void report(wire::TermError error, const wire::WdpData& about) = 0;
};

}  // namespace weft::wdp
