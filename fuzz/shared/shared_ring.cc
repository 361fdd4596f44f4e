// A ring of memory that a peer shares, and both ends of it: the honest writer and reader of this
// process, and a peer that changes any byte of the segment between two calls (spec/same-host 4).
// First byte: whether the reader pulls. Then steps: an operation and what it needs.
//
// While nothing was changed behind their backs the reader gets the stream that was written. Once
// something was, anything may come out, or an error; but nothing is touched that is not the
// ring's, the places' that were given, or what this process itself has referred to, and every call
// comes to an end.

#include <unistd.h>

#include <array>
#include <deque>
#include <memory>
#include <vector>

#include "fuzz/support/check.h"
#include "fuzz/support/input.h"
#include "shared/ring.h"

namespace {

using namespace weft;
using fuzz::Input;
using shared::kRingBytes;
using shared::RingControl;

enum class Step : uint8_t {
  write,
  write_large,
  publish,
  read,
  read_in_pieces,
  done_with,
  sleep,
  detach,
  forge_word,
  forge_control,
};
constexpr Step kLastStep = Step::forge_control;

const wire::HostOffer::Nonce kNonce{std::byte{'n'}, std::byte{'o'}, std::byte{'n'}};

constexpr size_t kReferFrom = 24 * 1024;

struct Memory {
  RingControl control{};
  alignas(64) std::array<std::byte, kRingBytes> ring{};
};

// What was written and not read, and the memory that it may lie in.
class Rig {
 public:
  explicit Rig(bool pulls)
      : pulls_(pulls),
        memory_(std::make_unique<Memory>()),
        writer_({&memory_->control, memory_->ring.data()}, kReferFrom),
        reader_({&memory_->control, memory_->ring.data()}) {
    if (!pulls) return;
    reader_.allow_references({::getpid(), reinterpret_cast<uintptr_t>(kNonce.data()), kNonce});
  }

  void run(Input& in) {
    switch (in.choice(kLastStep)) {
      case Step::write:
        write(in.u8(), 1 + in.u8() % 7U);
        break;
      case Step::write_large:
        write(size_t{in.u8()} * 512, 1 + in.u8() % 3U);
        break;
      case Step::publish:
        (void)writer_.publish();
        break;
      case Step::read:
        read(size_t{in.u8()} * 300, 1);
        break;
      case Step::read_in_pieces:
        read(in.u16(), 1 + in.u8() % 20U);
        break;
      case Step::done_with:
        (void)reader_.publish();
        (void)writer_.has_room();
        break;
      case Step::sleep:
        (void)reader_.sleep();
        (void)writer_.await_room();
        (void)reader_.has_input();
        break;
      case Step::detach:
        (void)writer_.detach();
        if (!forged_) FUZZ_CHECK(!writer_.copies_wanted());
        // From now on the memory is the program's.
        for (auto& m : sources_) std::fill(m.begin(), m.end(), std::byte{0xdd});
        break;
      case Step::forge_word:
        forge_word(in);
        break;
      case Step::forge_control:
        forge_control(in);
        break;
    }
  }

 private:
  void write(size_t n, size_t pieces) {
    std::vector<IoVec> all;
    for (size_t i = 0; i < pieces; ++i) {
      auto& m = sources_.emplace_back(n);
      for (std::byte& b : m) b = static_cast<std::byte>(next_++ * 167 >> 3);
      all.push_back({m.data(), m.size()});
    }
    const auto t = writer_.write(all, {});
    FUZZ_CHECK(t.bytes <= n * pieces);
    FUZZ_CHECK(t.bytes == 0 || t.error == 0);
    size_t left = t.bytes;
    for (size_t i = 0; i < pieces; ++i) {
      const auto& m = sources_[sources_.size() - pieces + i];
      const size_t step = std::min(left, m.size());
      expected_.insert(expected_.end(), m.begin(), m.begin() + static_cast<ptrdiff_t>(step));
      left -= step;
    }
    if (!forged_) FUZZ_CHECK(t.error == 0);
  }

  void read(size_t n, size_t pieces) {
    constexpr std::byte kGuard{0xa5};
    std::vector<std::vector<std::byte>> places;
    std::vector<IoVec> all;
    for (size_t i = 0; i < pieces; ++i) {
      const size_t size = n / pieces + i % 3;
      places.emplace_back(size + 16, kGuard);
      all.push_back({places.back().data(), size});
    }
    const auto t = reader_.read(all);
    size_t left = t.bytes;
    for (size_t i = 0; i < pieces; ++i) {
      const size_t step = std::min(left, all[i].iov_len);
      for (size_t k = 0; k < step && !forged_; ++k) {
        FUZZ_CHECK(!expected_.empty() && places[i][k] == expected_.front());
        expected_.pop_front();
      }
      left -= step;
      for (size_t k = all[i].iov_len; k < places[i].size(); ++k) FUZZ_CHECK(places[i][k] == kGuard);
    }
    FUZZ_CHECK(left == 0);
    if (!forged_) FUZZ_CHECK(t.error == 0);
  }

  // An address that is forged names memory of this very process, which nothing protects: only what
  // is there for it.
  uint64_t address(uint8_t choice) const {
    const auto ring = reinterpret_cast<uintptr_t>(memory_->ring.data());
    const std::array<uint64_t, 6> all{
        0, 8, ring, ring + kRingBytes - 1, ~uint64_t{0}, uint64_t{1} << 47};
    return all[choice % all.size()];
  }
  void forge_word(Input& in) {
    forged_ = true;
    const size_t at = in.u16() * 8U % kRingBytes;
    const uint64_t kind = in.u8() % 4;
    const uint64_t value = in.flag() ? kind << 56 | in.u16() : address(in.u8());
    std::memcpy(memory_->ring.data() + at, &value, sizeof value);
  }
  void forge_control(Input& in) {
    RingControl& c = memory_->control;
    const uint64_t by = uint64_t{in.u16()} * (in.flag() ? 8 : 1);
    switch (in.u8() % 6) {
      case 0:
        forged_ = true;
        c.written = in.flag() ? c.written + by : c.written - by;
        break;
      case 1:
        forged_ = true;
        c.read = in.flag() ? c.read + by : c.read - by;
        break;
      case 2:
        c.reader_sleeps = in.u8();
        break;
      case 3:
        c.reader_pulls = in.u8();
        // The writer refers to memory from now on, and this reader cannot pull.
        forged_ |= !pulls_ && c.reader_pulls != 0;
        break;
      case 4:
        c.copies_wanted = in.u8();
        break;
      default:
        c.wake_writer_at = by;
    }
  }

  const bool pulls_;
  std::unique_ptr<Memory> memory_;
  std::deque<std::vector<std::byte>> sources_;
  shared::RingWriter writer_;
  shared::RingReader reader_;
  std::deque<std::byte> expected_;
  uint64_t next_ = 1;
  bool forged_ = false;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Input in{fuzz::as_bytes(data, size)};
  Rig rig{in.flag()};
  while (!in.empty()) rig.run(in);
  return 0;
}
