// Work for a UcPair: random requests of all kinds from both sides at once, over a path that may
// lose, double, delay and damage. Looks at every completion when it happens and at all memory in
// the end, and collects what is wrong:
//   no completion before all bytes are placed; none twice; receives in the order of posting;
//   no byte outside of its message; with nothing lost and all receives posted, every message, also
//   those that one side sends just before it says goodbye.
//
//   UcPair p{options};
//   UcTraffic t{p, {.seed = seed}};
//   p.drive();
//   t.finish();
//   EXPECT_TRUE(t.wrong().empty());
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tests/support/uc_pair.h"

namespace weft::test {

struct UcTrafficOptions {
  uint64_t seed = 1;
  size_t requests = 24;     // of each side
  size_t most = 8 * 1024;   // bytes of most messages; small as likely as large
  size_t huge = 64 * 1024;  // bytes of a few
  double huge_share = 0.05;
  double reads = 0.15;                             // share of requests
  Duration spread = std::chrono::milliseconds{2};  // they are posted within this time

  // What the path does, so that it is known what must come of it.
  bool deaf = false;        // for so long that keepalives are lost, too: sessions may end
  bool lossy = false;       // datagrams may be lost: messages may be incomplete
  bool disorderly = false;  // reordering beyond the bounds of spec/wdp-uc 3.3
  bool scarce = false;      // receives come late, are too few or too small
};

class UcTraffic {
 public:
  UcTraffic(UcPair& pair, const UcTrafficOptions& options);
  ~UcTraffic();
  UcTraffic(const UcTraffic&) = delete;
  UcTraffic& operator=(const UcTraffic&) = delete;

  // The last look; closes the sessions on the way.
  void finish();
  // Sentences about what must not be.
  const std::vector<std::string>& wrong() const { return wrong_; }

  // For the statistics of a campaign.
  struct Totals {
    uint64_t messages = 0;  // Sends and Writes with immediate
    uint64_t delivered = 0;
    uint64_t reads = 0;
    uint64_t reads_failed = 0;
  };
  Totals totals() const;

 private:
  class Flow;  // the requests of one side and their targets at the other
  void last_words();
  void check_last_words();
  void check_lost(UcSide& sender, UcSide& receiver);

  UcPair& pair_;
  const UcTrafficOptions options_;
  std::vector<std::string> wrong_;
  std::unique_ptr<Flow> forth_;
  std::unique_ptr<Flow> back_;
  std::vector<Buffer> words_;  // what `a` sends at the end
  std::vector<Buffer> heard_;  // and the receives for it
  size_t words_heard_ = 0;
};

}  // namespace weft::test
