// Randomness as the core sees it: handed in, so that a simulation repeats itself from its seed.
#pragma once

#include <cstdint>

namespace weft {

class Random {
 public:
  virtual ~Random() = default;
  virtual uint64_t next() = 0;
};

// SplitMix64: small, seeded, good enough for simulations, jitter and test data; not for secrets.
class SeededRandom final : public Random {
 public:
  explicit SeededRandom(uint64_t seed) : state_(seed) {}
  uint64_t next() override {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15U);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31);
  }

 private:
  uint64_t state_;
};

// From getrandom(2). Any thread.
class SystemRandom final : public Random {
 public:
  uint64_t next() override;
};

}  // namespace weft
