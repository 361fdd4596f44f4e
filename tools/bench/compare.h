// Two sets of kept results beside each other: what differs by more than the repetitions do.
#pragma once

#include <istream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "bench/method.h"

namespace weft::bench {

// The repetitions of one case: same suite, path, name and parameters.
struct KeptCase {
  std::map<std::string, Series> figures;
  unsigned failed = 0;
};

struct Kept {
  // By "PATH SUITE NAME", and behind it "mtu=N", "offloads=off" and so on where these were chosen.
  std::map<std::string, KeptCase> cases;
  std::set<std::string> machines;  // "CPU, N CPUs, Linux KERNEL"
  std::set<std::string> versions;
  std::vector<std::string> notes;  // sentences about lines that were passed over
};

// Lines as result_line() makes them; those of other kinds are passed over, and so is one that its
// writer did not get to end, with a note. Throws kit::Failure, with `name` and the number of the
// line, for what is none.
Kept read_results(std::istream& in, const std::string& name);

// Whether B differs from A by more than the repetitions among themselves: the ranges from smallest
// to largest value do not touch. unknown: with fewer than two repetitions there is no spread.
enum class Verdict : uint8_t { same, better, worse, unknown };
const char* name_of(Verdict verdict);

struct Comparison {
  std::string key;
  std::string figure;
  Spread a;
  Spread b;
  size_t a_count = 0;
  size_t b_count = 0;
  double ratio = 0;  // of the medians, B / A; 0 where A's is 0
  Verdict verdict = Verdict::unknown;
};

// What `weft bench compare` looks at unless it is told.
const std::vector<std::string>& usual_figures();

// For each case that both have, each figure that both have; of those in figures.h. `least`: a
// difference of the medians below this share counts as none.
std::vector<Comparison> compare(const Kept& a, const Kept& b,
                                const std::vector<std::string>& figures, double least);

// A case that fails in B and did not in A, or always does and did not always.
struct Broken {
  std::string key;
  unsigned a_failed = 0;
  unsigned b_failed = 0;
};
std::vector<Broken> broken_in(const Kept& a, const Kept& b);

// Throws kit::Failure for a figure that no line of either has.
void require_figures(const Kept& a, const Kept& b, const std::vector<std::string>& figures);

// The cases that only one of them has.
std::vector<std::string> only_in(const Kept& one, const Kept& other);

std::string as_text(const std::vector<Comparison>& comparisons);
nlohmann::json as_json(const std::vector<Comparison>& comparisons);

}  // namespace weft::bench
