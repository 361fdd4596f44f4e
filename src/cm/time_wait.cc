#include "cm/time_wait.h"

#include <utility>

#include "config/options.h"

namespace weft::cm {
namespace {

using namespace std::chrono_literals;
constexpr Duration kTimeWait = 2s;

}  // namespace

using engine::Token;

void TimeWait::ended(Token& token, bool program_asked) {
  owed_ = !program_asked;
  if (program_asked) begin(token);
}

void TimeWait::disconnected(Token& token) {
  if (std::exchange(owed_, false)) begin(token);
}

void TimeWait::begin(Token& token) {
  if (config::options().identity == config::Identity::iwarp) return;
  token.runtime().set_deadline(token, *this, token.now() + kTimeWait);
}

}  // namespace weft::cm
