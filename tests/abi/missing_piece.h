// A call that finds no memory for one thing, and what is left behind then.
#pragma once

#include <malloc.h>

#include "tests/abi/in_child.h"
#include "tests/abi/scarcity.h"

namespace weft::test {

// Of the calling thread the piece of memory behind the next `n` is missing, until this is asked.
class MissingPiece {
 public:
  explicit MissingPiece(long n) {
    one_is_missing = true;
    pieces_left = n;
  }
  ~MissingPiece() { pieces_left = -1; }
  MissingPiece(const MissingPiece&) = delete;
  MissingPiece& operator=(const MissingPiece&) = delete;
  // Did it come to that?
  static bool missed() {
    const bool missed = pieces_left < 0;
    pieces_left = -1;
    return missed;
  }
};

// Of part(n): good, and nothing was missed; good; more: the number of the check that failed.
constexpr int kLasted = 0;
constexpr int kMissed = 1;

// Does part(n) in a process of its own for each n, until no piece is missed. That comes behind the
// piece `least` at the earliest.
template <class Part>
void without_each_piece(Part&& part, long least = 1) {
  int ended = kMissed;
  long n = 0;
  for (; ended == kMissed && n < 5000; ++n) {
    ended = in_child([&]() noexcept {
      // What is said about it is no part of this.
      if (freopen("/dev/null", "w", stderr) == nullptr) return 255;
      mallopt(M_PERTURB, 0xdd);  // what was freed is not used by chance
      return part(n);
    });
  }
  EXPECT_EQ(ended, kLasted) << "without piece " << n - 1;
  EXPECT_GT(n, least) << "the call takes more";
}

}  // namespace weft::test
