// When files by time begin, of several streams whose clocks may differ: one stream leads, and a
// file begins with its first block in another period.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace weft::stream {

// Not thread-safe.
class RotationClock {
 public:
  // `period_ns`: above 0.
  RotationClock(int64_t period_ns, uint32_t streams) : period_ns_(period_ns), others_(streams) {}

  // The next block of this stream begins at `ns`, since 1970. True: with another file.
  bool turns(uint32_t stream, int64_t ns);
  // The stream ends: another one leads.
  void over(uint32_t stream);

 private:
  // What a stream that does not lead has done since the leader's last block.
  struct Other {
    uint64_t since = 0;
    int64_t period = 0;
    unsigned crossings = 0;
  };
  // A leader that sends nothing while another one crosses so many periods has fallen silent.
  static constexpr unsigned kPatience = 2;

  const int64_t period_ns_;
  std::vector<Other> others_;
  std::optional<uint32_t> leader_;
  std::optional<int64_t> period_;  // of the leader
  uint64_t blocks_ = 0;            // of leaders
};

}  // namespace weft::stream
