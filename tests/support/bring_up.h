// How two UC queue pairs come to a session, over a simulated path (spec/wdp 4, spec/addressing 6):
// one calls a listener, one calls another by its number, or both call at once. Who is called may
// take its time, and who is refused for now calls again. Collects what must not be:
//   one side alone has a session at the end, or one of them two; they do not agree on it; a program
//   hears of a call twice; an address that has shown nothing draws more than three times what it
//   sent; nothing was lost, and there is no session.
//
//   BringUp up{options};
//   up.drive();
//   if (up.established()) UcPair's parameters are up.parameters(first)
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/uc_pair.h"

namespace weft::test {

class BringUp {
 public:
  // Of the options: seed, link, and what a side may offer.
  explicit BringUp(const UcPairOptions& options);
  ~BringUp();
  BringUp(const BringUp&) = delete;
  BringUp& operator=(const BringUp&) = delete;

  void drive();
  // Both sides have a session, and it is the same.
  bool established() const { return established_; }
  // `first`: of the side that calls, where one does.
  const wdp::UcParameters& parameters(bool first) const;
  const std::vector<std::string>& wrong() const { return wrong_; }

 private:
  class Side;
  enum class How : uint8_t { listener, number, crossing };

  void compare();
  void complain(bool bad, const char* what) {
    if (bad) wrong_.emplace_back(what);
  }

  const UcPairOptions options_;
  SeededRandom random_;
  const How how_;
  sim::Scheduler scheduler_;
  sim::DatagramLink link_;
  std::array<std::unique_ptr<Side>, 2> sides_;
  bool established_ = false;
  std::vector<std::string> wrong_;
};

}  // namespace weft::test
