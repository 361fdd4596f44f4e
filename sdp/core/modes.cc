#include "sdp/core/modes.h"

#include <algorithm>
#include <array>

namespace weft::sdp {
namespace {

struct Change {
  Mode from;
  Mode to;
  Changer by;
  bool operator==(const Change&) const = default;
};
constexpr std::array<Change, 4> kChanges{{
    {Mode::combined, Mode::buffered, Changer::source},
    {Mode::buffered, Mode::combined, Changer::sink},
    {Mode::combined, Mode::pipelined, Changer::source},
    {Mode::pipelined, Mode::combined, Changer::source},
}};

}  // namespace

bool mode_may_change(Mode from, Mode to, Changer by) {
  return std::find(kChanges.begin(), kChanges.end(), Change{from, to, by}) != kChanges.end();
}

}  // namespace weft::sdp
