// The FPDU receiver in each state that the stream can leave it in (spec/mpa 3.3). First byte:
// Start. Second: CRC, the form of FPDUs in shared memory, RTR of kind B. Then steps, from which a
// stream of FPDUs is made: good ones, damaged ones, raw bytes. It is received twice, in pieces of
// any size and all at once, and what was delivered must be the same.

#include "base/crc32c.h"
#include "fuzz/support/input.h"
#include "mpa/receiver.h"

namespace {

using namespace weft;
using fuzz::Input;
using mpa::Receiver;
using mpa::Verdict;

// How much of the first FPDU is handed over before the pieces begin.
enum class Start : uint8_t {
  nothing,
  in_length,
  in_header,
  in_payload,
  in_pad,
  in_crc,
  second_fpdu,
  placed_header,
  placed_payload,
  placed_pad,
  placed_crc,
};
constexpr Start kLastStart = Start::placed_crc;
constexpr size_t kSmall = 41;  // bytes of ULPDU; one of pad
constexpr size_t kLarge = Receiver::kDirectFrom + 7;

// The layer above: a header of 14 or 18 bytes, told by the first bit. It refuses what begins with
// 0x5e, and has no memory for what begins with 0x5f.
class Sink final : public mpa::UlpduSink {
 public:
  std::vector<std::vector<std::byte>> delivered;  // header and payload

  size_t header_size(std::byte first) const override {
    return (std::to_integer<unsigned>(first) & 0x80) != 0 ? 14 : 18;
  }
  Verdict begin(Bytes start, size_t ulpdu) override {
    FUZZ_CHECK(!start.empty() && ulpdu <= wire::FpduForm::kMostInMemory);
    FUZZ_CHECK(start.size() == std::min(header_size(start[0]), ulpdu));
    header_.assign(start.begin(), start.end());
    payload_.assign(ulpdu - start.size(), std::byte{});
    if (start[0] == std::byte{0x5e}) return fail(wire::term::kMpaLength);
    return Ok{};
  }
  Verdict where(size_t offset, size_t length, PieceList& places) override {
    FUZZ_CHECK(length > 0 && offset + length <= payload_.size());
    if (header_[0] == std::byte{0x5f}) return fail(wire::term::kTaggedBounds);
    // Two segments, cut anywhere.
    const size_t first = std::min(length, (offset + length / 3) % length);
    places.add(payload_.data() + offset, first);
    places.add(payload_.data() + offset + first, length - first);
    return Ok{};
  }
  wire::TermError unreachable() override { return wire::term::kTaggedBounds; }
  Verdict deliver() override {
    auto& all = delivered.emplace_back(header_);
    all.insert(all.end(), payload_.begin(), payload_.end());
    return Ok{};
  }

 private:
  std::vector<std::byte> header_;
  std::vector<std::byte> payload_;
};

enum class Framing : uint8_t { tcp, tcp_with_crc, memory };

std::vector<std::byte> fpdu(Bytes ulpdu, Framing framing) {
  if (framing == Framing::memory) {
    std::vector<std::byte> frame(sizeof(uint32_t));
    store_be(frame.data(), static_cast<uint32_t>(ulpdu.size()));
    frame.insert(frame.end(), ulpdu.begin(), ulpdu.end());
    return frame;
  }
  const bool crc = framing == Framing::tcp_with_crc;
  std::vector<std::byte> frame(wire::fpdu_size(ulpdu.size()));
  store_be(frame.data(), static_cast<uint16_t>(ulpdu.size()));
  std::copy(ulpdu.begin(), ulpdu.end(), frame.begin() + wire::kFpduLengthSize);
  const size_t covered = frame.size() - wire::kFpduCrcSize;
  store_le32(frame.data() + covered, crc ? crc32c(Bytes{frame}.first(covered)) : 0x11223344);
  return frame;
}

std::vector<std::byte> ulpdu(size_t n, std::byte first) {
  std::vector<std::byte> u(n);
  for (size_t i = 0; i < n; ++i) u[i] = static_cast<std::byte>(i * 7 + i / 251);
  if (n > 0) u[0] = first;
  return u;
}

enum class Step : uint8_t { raw, whole, damaged, large, empty };
constexpr Step kLastStep = Step::empty;
constexpr size_t kMostBytes = 200'000;

std::vector<std::byte> make_stream(Start start, Framing framing, Input& in) {
  std::vector<std::byte> all;
  const auto add = [&](Bytes b) { all.insert(all.end(), b.begin(), b.end()); };
  if (start != Start::nothing) {
    add(fpdu(ulpdu(start >= Start::placed_header ? kLarge : kSmall, std::byte{0xc1}), framing));
  }
  while (!in.empty() && all.size() < kMostBytes) {
    switch (in.choice(kLastStep)) {
      case Step::raw:
        add(in.take(in.u8()));
        break;
      case Step::whole:
        add(fpdu(in.take(in.u8()), framing));
        break;
      case Step::damaged: {
        auto frame = fpdu(ulpdu(in.u8(), std::byte{0x41}), framing);
        const size_t at = in.u16() % frame.size();
        frame[at] ^= static_cast<std::byte>(in.u8());
        add(frame);
        break;
      }
      case Step::large: {
        const size_t n = in.u16();
        const auto first = static_cast<std::byte>(in.u8());
        auto frame = fpdu(ulpdu(n, first), framing);
        if (in.flag()) frame.back() ^= std::byte{1};
        add(frame);
        break;
      }
      case Step::empty:
        add(fpdu({}, framing));
        break;
    }
  }
  return all;
}

size_t first_piece(Start start) {
  constexpr size_t kEndSmall = wire::fpdu_size(kSmall);
  constexpr size_t kEndLarge = wire::fpdu_size(kLarge);
  static_assert(wire::fpdu_pad(kSmall) == 1 && wire::fpdu_pad(kLarge) == 3);
  switch (start) {
    case Start::nothing:
      return 0;
    case Start::in_length:
      return 1;
    case Start::in_header:
    case Start::placed_header:
      return 2 + 9;
    case Start::in_payload:
      return 2 + 20;
    case Start::in_pad:
      return kEndSmall - 5;
    case Start::in_crc:
      return kEndSmall - 2;
    case Start::second_fpdu:
      return kEndSmall;
    case Start::placed_payload:
      return 1000;
    case Start::placed_pad:
      return kEndLarge - 6;
    case Start::placed_crc:
      return kEndLarge - 1;
  }
  return 0;
}

struct Outcome {
  bool good = true;
  wire::TermError error;
  bool at_boundary = false;
  uint64_t fpdus = 0;
};

// One piece, straight to its place as far as that is wanted, as a driver does with one recvmsg.
Verdict receive(Receiver& r, Bytes piece) {
  if (r.direct()) {
    PieceList places;
    if (Verdict v = r.direct_places(places); !v.ok()) return v;
    size_t n = 0;
    for (const IoVec& place : places.pieces()) {
      const size_t part = std::min(place.iov_len, piece.size() - n);
      std::memcpy(place.iov_base, piece.data() + n, part);
      n += part;
    }
    if (Verdict v = r.direct_received(n); !v.ok()) return v;
    piece = piece.subspan(n);
  }
  const auto rest = fuzz::exact(piece, piece.size());
  return r.received(rest);
}

Outcome run(Receiver& r, Bytes stream, size_t first, Bytes sizes) {
  Input size{sizes};
  Outcome o;
  size_t done = 0;
  while (done < stream.size() && o.good) {
    size_t n = done == 0 && first > 0 ? first : size.u8();
    if (n == 0 || n > stream.size() - done) n = stream.size() - done;
    // The sizes are for the beginning; a hundred thousand pieces tell no more.
    if (done > 2 * wire::fpdu_size(kLarge)) n = std::max<size_t>(n, 4000);
    n = std::min(n, stream.size() - done);
    const auto piece = fuzz::exact(stream.subspan(done), n);
    if (const Verdict v = receive(r, piece); !v.ok()) {
      o.good = false;
      o.error = v.error();
    }
    done += n;
    if (n % 5 == 0) r.trim();
  }
  o.at_boundary = r.at_boundary();
  o.fpdus = r.fpdus();
  return o;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Input in{fuzz::as_bytes(data, size)};
  const auto start = in.choice(kLastStart);
  const uint8_t options = in.u8();
  const bool crc = (options & 1) == 0;
  const bool memory = (options & 2) != 0;
  const Framing framing = memory ? Framing::memory : crc ? Framing::tcp_with_crc : Framing::tcp;
  const bool empty_ulpdu = (options & 4) != 0;
  const Bytes sizes = in.take(in.u8() % 48);
  const auto stream = make_stream(start, framing, in);

  Sink cut;
  Receiver in_pieces{cut};
  in_pieces.configure(crc, empty_ulpdu);
  if (memory) in_pieces.go_by_memory();
  const Outcome a = run(in_pieces, stream, first_piece(start), sizes);

  Sink gathered;
  Receiver at_once{gathered};
  at_once.configure(crc, empty_ulpdu);
  if (memory) at_once.go_by_memory();
  const Outcome b = run(at_once, stream, 0, {});

  // RFC 5044 section 4: the stream may be cut anywhere.
  FUZZ_CHECK(cut.delivered.size() == gathered.delivered.size());
  for (size_t i = 0; i < cut.delivered.size(); ++i) {
    FUZZ_CHECK(fuzz::same(cut.delivered[i], gathered.delivered[i]));
  }
  FUZZ_CHECK(a.fpdus == b.fpdus);
  // Without CRC a bad header is seen before the FPDU is whole; otherwise the errors agree.
  FUZZ_CHECK(b.good || !a.good);
  if (framing == Framing::tcp_with_crc) {
    FUZZ_CHECK(a.good == b.good && a.error == b.error);
    FUZZ_CHECK(!a.good || a.at_boundary == b.at_boundary);
  }
  if (a.good && b.good) FUZZ_CHECK(a.at_boundary == b.at_boundary);
  return 0;
}
