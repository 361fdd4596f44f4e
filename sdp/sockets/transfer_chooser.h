// How a large send goes: copied (BCopy), or read by the peer where it lies (Read ZCopy). Which is
// cheaper depends on the size, on the machine, and on what else it does; so both are tried now and
// then, and what they cost on this connection decides.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace weft::sdp {

// How a send is transferred.
enum class Transfer : uint8_t { copied, in_place };

// From how many bytes on a send is in place: a number, never, or by what it costs.
struct ZcopyThreshold {
  static constexpr int kByCost = -1;
  static constexpr int kNever = 0;
  // The messages about less cost more than the copy.
  static constexpr int kLeast = 4096;
  int bytes = kByCost;

  // `WEFT_SDP_ZCOPY_THRESH`: a number of bytes from kLeast on, 0 for never, `auto`. Nothing if it
  // is none of them.
  static std::optional<ZcopyThreshold> parse(std::string_view text);
  // What the environment of the process says.
  static ZcopyThreshold of_process();
  // A sentence, if that is nothing of these: then it is by cost.
  static std::optional<std::string> wrong_in_process();
};

class TransferChooser {
 public:
  explicit TransferChooser(ZcopyThreshold threshold) : threshold_(threshold) {}
  void set_threshold(ZcopyThreshold threshold) { threshold_ = threshold; }
  ZcopyThreshold threshold() const { return threshold_; }

  // The fewest bytes that may go in place.
  size_t least() const;
  Transfer choose(size_t bytes) const;
  // A send of so many bytes was transferred so, and took so long.
  void record(Transfer transfer, size_t bytes, std::chrono::nanoseconds time);

 private:
  // By cost, less is never in place: the messages about it cost more than the copy.
  static constexpr size_t kLeast = 16 << 10;
  // Of sends of about one size.
  struct Record {
    Transfer transfer = Transfer::copied;  // the current one
    bool tried = false;                    // whether it is only tried
    std::array<double, 2> cost{0, 0};      // nanoseconds a byte, by Transfer; 0: not known
    size_t bytes = 0;                      // sent so since it is the current one
    double measured_ns = 0;
    size_t measured_bytes = 0;
    uint32_t turns = 0;     // until the other one is tried
    uint32_t interval = 1;  // turns between two trials
  };
  static constexpr size_t kSizes = 8;
  static size_t size_class(size_t bytes);
  static void end_turn(Record& record);
  static void go(Record& record, Transfer transfer, bool tried);

  ZcopyThreshold threshold_;
  std::array<Record, kSizes> records_;
};

}  // namespace weft::sdp
