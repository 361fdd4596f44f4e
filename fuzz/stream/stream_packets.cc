// Packets of a stream, from anybody, through the parser of their format, Continuity and Ledger
// (tools/stream). Input: the format; then steps, each with its arguments.
//
// Whatever comes, each packet is in one account, all numbers of a session are in one, and a stream
// that is good again loses no packet for longer than a ring.

#include "fuzz/support/input.h"
#include "stream/intake.h"

namespace {

using namespace weft;
using namespace weft::stream;
using fuzz::Input;

constexpr uint32_t kPackets = 8;  // of a block
constexpr uint32_t kBlocks = 8;
constexpr uint64_t kRing = uint64_t{kPackets} * kBlocks;
constexpr size_t kMostSteps = 200;

enum class Kind : uint8_t {
  rsp,
  rsp_4_bit,
  spead,
  spead_heaps,
  raw,
  raw_few_bits,
  vdif,
  vdif_legacy,
  lofar2,
  raw_little,
};
constexpr auto kLastKind = Kind::raw_little;

// What the receiver is told.
Shape shape_of(Kind kind) {
  switch (kind) {
    case Kind::rsp:
      return {.beamlets = 1, .slices = 16, .bits = 8};
    case Kind::rsp_4_bit:
      return {.beamlets = 2, .slices = 16, .bits = 4, .clock = 160};
    case Kind::spead:
      return {.format = Format::spead, .payload = 16, .items = 6};
    case Kind::spead_heaps:
      return {.format = Format::spead,
              .payload = 16,
              .heap_packets = 4,
              .number = {.at = 0x1600, .bytes = 8, .step = 64},
              .stream_number = {.at = 0x4101, .bytes = 8},
              .address_bits = 40,
              .items = 8};
    case Kind::raw:
    case Kind::raw_little:
      return {.format = Format::raw, .payload = 16};
    case Kind::raw_few_bits:
      return {
          .format = Format::raw,
          .payload = 16,
          .header = 12,
          .number =
              {.at = 3, .bytes = 5, .order = ByteOrder::little, .shift = 6, .step = 4, .bits = 20},
          .stream_number = {.at = 3, .bytes = 1, .bits = 6}};
    case Kind::vdif:
      return {.format = Format::vdif, .bits = 2, .payload = 16, .frames_per_second = 40};
    case Kind::vdif_legacy:
      return {.format = Format::vdif,
              .bits = 2,
              .payload = 16,
              .frames_per_second = 40,
              .legacy = true,
              .vtp = true};
    case Kind::lofar2:
      return {.format = Format::lofar2, .beamlets = 2, .slices = 4, .bits = 8};
  }
  return {};
}

Shape with_order(Shape shape, ByteOrder order) {
  shape.number = {.at = 0, .bytes = 8, .order = order};
  return shape;
}
// What packets are.
Shape shape_sent(Kind kind) {
  const Shape told = shape_of(kind);
  return kind == Kind::raw_little ? with_order(told, ByteOrder::little) : told;
}

enum class Step : uint8_t {
  go_on,     // a few of the stream's packets
  bytes,     // any bytes
  damaged,   // the next packet with a byte of its header changed
  cut,       // the next packet, shorter or longer
  nowhere,   // a packet with any number
  set_anew,  // the stream's numbers go on elsewhere
  hole,      // they leave some out
  again,     // an older packet
  silence,   // the sender ends
  consume,   // the consumer takes all
};
constexpr auto kLastStep = Step::consume;

class Bench {
 public:
  explicit Bench(Kind kind)
      : told_(shape_of(kind)),
        shape_(shape_sent(kind)),
        ring_({.name = {},
               .shape = told_,
               .streams = 1,
               .blocks = kBlocks,
               .packets_per_block = kPackets,
               .slot_bytes = (told_.packet_bytes() + 15) / 16 * 16}),
        lane_(ring_.stream(0), LedgerRules{}) {
    lane_.store.attach();
  }

  std::vector<std::byte> packet(uint64_t number) const {
    std::vector<std::byte> p(shape_.packet_bytes());
    write_header(shape_, 1, number, p);
    for (size_t i = shape_.header_bytes(); i < p.size(); ++i) {
      p[i] = static_cast<std::byte>(number * 31 + i);
    }
    return p;
  }

  // Any bytes.
  void offer_any(const std::vector<std::byte>& p) {
    look_at(p);
    offer(p);
  }
  void offer(const std::vector<std::byte>& p) {
    ++offered_;
    const uint64_t first = lane_.ledger.first();
    const uint64_t next = lane_.ledger.next();
    const uint64_t sessions = counts().sessions;
    FUZZ_CHECK(intake_.take(p, ++now_));
    FUZZ_CHECK(counts().sessions - sessions <= 1);
    if (counts().sessions != sessions && sessions != 0) spans_ += next - first;
    lane_.ledger.settle();
  }
  void end() {
    const uint64_t first = lane_.ledger.first();
    const uint64_t next = lane_.ledger.next();
    const uint64_t sessions = counts().sessions;
    intake_.settle(++now_);
    if (counts().sessions != sessions && sessions != 0) spans_ += next - first;
    lane_.ledger.finish(std::nullopt);
    lane_.continuity.end();
    lane_.ledger.count_invalid(lane_.continuity.take_given_up());
    lane_.ended_ns = now_;
    now_ += 10'000'000'000;
  }
  // Every packet that consumers get is what its number's place says.
  void consume() {
    while (const weft_stream_block* b = lane_.store.unreleased()) {
      for (uint32_t i = 0; i < b->packets; ++i) {
        if ((b->valid[i / 8] >> (i % 8) & 1) == 0) continue;
        const ConstPacket there{lane_.store.data_of(b) + size_t{i} * b->slot_bytes,
                                shape_.packet_bytes()};
        FUZZ_CHECK(is_number(there, b->number * b->packets + i));
      }
      lane_.store.release();
    }
  }
  // Packets in no account yet: others have to agree with them.
  uint64_t waiting() const {
    const Counts& c = counts();
    return offered_ - (c.received + c.late + c.duplicate + c.overrun + c.invalid + c.flagged +
                       c.foreign + c.control);
  }
  void check_accounts() const {
    const Counts& c = counts();
    FUZZ_CHECK(waiting() == 0);
    const uint64_t now = c.sessions == 0 ? 0 : lane_.ledger.next() - lane_.ledger.first();
    FUZZ_CHECK(c.received + c.missing + c.overrun + c.flagged == spans_ + now);
  }
  const Counts& counts() const { return lane_.ledger.counts(); }

 private:
  // Read as its sender meant it, or, of an open shape, as packets before it seemed to be.
  bool is_number(ConstPacket packet, uint64_t number) const {
    if (!told_.is_open()) return read_header(shape_, packet).is(number);
    return read_header(with_order(told_, ByteOrder::big), packet).is(number) ||
           read_header(with_order(told_, ByteOrder::little), packet).is(number);
  }
  // What holds of any bytes, whatever becomes of them.
  void look_at(const std::vector<std::byte>& p) const {
    const Header header = read_header(shape_, p);
    (void)fields_of(shape_, p);
    if (!header.has_number()) {
      FUZZ_CHECK(!explain(shape_, p).empty());
      return;
    }
    FUZZ_CHECK(header.number < kMostNumber);
    std::vector<std::byte> kept(shape_.packet_bytes(), std::byte{0xa5});
    copy_packet(shape_, p, kept.data());
    const Header again = read_header(shape_, kept);
    FUZZ_CHECK(again.verdict == header.verdict && again.number == header.number &&
               again.origin == header.origin && again.stream == header.stream);
  }

  const Shape told_;
  const Shape shape_;  // of good packets
  Ring ring_;
  Lane lane_;
  InletOptions options_{.transport = Transport::udp,
                        .shape = told_,
                        .address = {},
                        .circuits = {},
                        .library = {},
                        .tell = [](const nlohmann::json&) {}};
  Intake intake_{options_, 0, lane_, false};
  int64_t now_ = 1'000'000'000;
  uint64_t offered_ = 0;
  uint64_t spans_ = 0;  // of sessions before this one
};

// Of 48 bits, so that counters of 40 and 48 bits wrap.
uint64_t number_of(Input& input) {
  uint64_t number = 0;
  for (int i = 0; i < 6; ++i) number = number << 8 | input.u8();
  return number;
}

void take_step(Bench& bench, Input& input, uint64_t& next) {
  switch (input.choice(kLastStep)) {
    case Step::go_on:
      for (unsigned n = input.u8(); n > 0; --n) bench.offer(bench.packet(next++));
      break;
    case Step::bytes: {
      const Bytes bytes = input.take(input.u8());
      bench.offer_any(fuzz::exact(bytes, bytes.size()));
      break;
    }
    case Step::damaged: {
      auto p = bench.packet(next++);
      p[input.u8() % p.size()] ^= static_cast<std::byte>(input.u8());
      bench.offer_any(p);
      break;
    }
    case Step::cut: {
      auto p = bench.packet(next++);
      p.resize(input.u8());
      bench.offer_any(p);
      break;
    }
    case Step::nowhere:
      bench.offer_any(bench.packet(number_of(input)));
      break;
    case Step::set_anew:
      next = number_of(input);
      break;
    case Step::hole:
      next += input.u16();
      break;
    case Step::again:
      bench.offer(bench.packet(next - std::min<uint64_t>(next, input.u16())));
      break;
    case Step::silence:
      bench.end();
      break;
    case Step::consume:
      bench.consume();
      break;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Input input{fuzz::as_bytes(data, size)};
  Bench bench{input.choice(kLastKind)};
  uint64_t next = number_of(input);
  for (size_t step = 0; step < kMostSteps && !input.empty(); ++step) {
    take_step(bench, input, next);
    if (input.flag()) bench.consume();
  }
  // The sender is good again, and the consumer keeps up. Where its counter wraps meanwhile, its
  // packets wait, and are then taken.
  bench.end();
  const auto taken_or_waits = [&] { return bench.counts().received + bench.waiting(); };
  for (uint64_t i = 0; i < 3 * kRing; ++i) {
    const uint64_t before = taken_or_waits();
    bench.offer(bench.packet(next++));
    bench.consume();
    if (i >= kRing) FUZZ_CHECK(taken_or_waits() == before + 1);
  }
  bench.end();
  bench.consume();
  bench.check_accounts();
  return 0;
}
