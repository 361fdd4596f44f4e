// Captures as other people's programs write them: kinds of link, byte orders, clocks, files that
// were cut off.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>

#include "kit/failure.h"
#include "stream/source.h"

namespace weft::stream {
namespace {

using Bytes = std::vector<uint8_t>;

constexpr uint32_t kEthernet = 1;
constexpr uint32_t kRawIp = 101;
constexpr uint32_t kCooked = 113;
constexpr uint32_t kCooked2 = 276;
constexpr uint32_t kIpv4 = 228;
constexpr uint16_t kPort = 16'011;

Bytes operator+(Bytes a, const Bytes& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}
Bytes big(uint64_t value, unsigned bytes) {
  Bytes b;
  while (bytes-- > 0) b.push_back(static_cast<uint8_t>(value >> (8 * bytes)));
  return b;
}
Bytes little(uint32_t value) {
  const Bytes b = big(value, 4);
  return {b.rbegin(), b.rend()};
}

// A packet of Shape{raw, payload 20}.
Bytes raw(uint64_t number) {
  Bytes payload;
  for (unsigned i = 0; i < 20; ++i) payload.push_back(static_cast<uint8_t>(number + i));
  return big(number, 8) + payload;
}
Bytes udp(const Bytes& payload, uint16_t port = kPort) {
  return big(4000, 2) + big(port, 2) + big(8 + payload.size(), 2) + big(0, 2) + payload;
}
// `options`: so many words behind the fixed header.
Bytes ip(const Bytes& inside, uint16_t fragment = 0, uint8_t protocol = 17, uint8_t options = 0) {
  return big(0x45U + options, 1) + big(0, 1) + big(20U + 4U * options + inside.size(), 2) +
         big(1, 2) + big(fragment, 2) + big(64, 1) + big(protocol, 1) + big(0, 2) +
         big(0x7f000001, 4) + big(0x7f000001, 4) + Bytes(4U * options, 1) + inside;
}
Bytes ethernet(const Bytes& inside, const Bytes& tags = {}) {
  return Bytes(12, 0xaa) + tags + big(0x0800, 2) + inside;
}
// Type, nothing, the interface, kind of address, direction, length, address.
Bytes cooked2(const Bytes& inside) {
  return Bytes{8, 0, 0, 0, 0, 0, 0, 2, 0, 1, 4, 6, 2, 0, 0, 0, 0, 1, 0, 0} + inside;
}
Bytes cooked(const Bytes& inside) {
  return Bytes(14, 0xbb) + big(0x0800, 2) + inside;
}

struct Kind {
  uint32_t link = kEthernet;
  bool nano = false;
  bool swapped = false;  // written by a big-endian machine
};
Bytes capture(const std::vector<Bytes>& frames, const Kind& kind = {}) {
  const auto word = [&](uint32_t v) { return kind.swapped ? big(v, 4) : little(v); };
  const auto two_halves = [&](uint16_t a, uint16_t b) {
    return kind.swapped ? big(a, 2) + big(b, 2) : little(a | uint32_t{b} << 16);
  };
  Bytes file = word(kind.nano ? 0xa1b23c4d : 0xa1b2c3d4) + two_halves(2, 4) + word(0) + word(0) +
               word(65'535) + word(kind.link);
  for (const Bytes& frame : frames) {
    const auto size = static_cast<uint32_t>(frame.size());
    file = file + word(1'600'000'000) + word(999'999) + word(size) + word(size) + frame;
  }
  return file;
}

class Pcap : public ::testing::Test {
 protected:
  ~Pcap() override { (void)std::remove(path_.c_str()); }

  std::unique_ptr<Source> open(const Bytes& file, uint32_t streams = 1) {
    std::ofstream{path_, std::ios::binary}.write(reinterpret_cast<const char*>(file.data()),
                                                 static_cast<std::streamsize>(file.size()));
    return make_pcap_source({.pcap = path_}, shape_, streams);
  }
  // Of a stream; each with the bytes that it should have.
  std::vector<uint64_t> numbers(Source& source, uint32_t stream = 0) const {
    std::vector<uint64_t> all;
    std::vector<std::byte> packet(shape_.packet_bytes());
    while (const auto number = source.own_number(stream)) {
      EXPECT_TRUE(source.fill(stream, *number, packet));
      const Bytes expected = raw(*number);
      EXPECT_EQ(std::memcmp(packet.data(), expected.data(), expected.size()), 0) << *number;
      all.push_back(*number);
    }
    return all;
  }
  std::string refusal(const Bytes& file) {
    try {
      open(file);
    } catch (const kit::Failure& failure) {
      return std::string{failure.what()}.substr(path_.size());
    }
    return "none";
  }

  const Shape shape_{.format = Format::raw, .payload = 20};
  const std::string path_ = ::testing::TempDir() + "weft-pcap-" + std::to_string(::getpid());
};

using Numbers = std::vector<uint64_t>;

TEST_F(Pcap, EachKindOfLinkByteOrderAndClock) {
  for (const bool nano : {false, true}) {
    for (const bool swapped : {false, true}) {
      const auto read = [&](uint32_t link, const Bytes& a, const Bytes& b) {
        const auto source = open(capture({a, b}, {link, nano, swapped}));
        EXPECT_EQ(source->unusable(), 0U) << link;
        return numbers(*source);
      };
      const Bytes a = ip(udp(raw(7)));
      const Bytes b = ip(udp(raw(8)));
      EXPECT_EQ(read(kEthernet, ethernet(a), ethernet(b)), (Numbers{7, 8}));
      EXPECT_EQ(read(kCooked, cooked(a), cooked(b)), (Numbers{7, 8}));
      EXPECT_EQ(read(kCooked2, cooked2(a), cooked2(b)), (Numbers{7, 8}));
      EXPECT_EQ(read(kRawIp, a, b), (Numbers{7, 8}));
      EXPECT_EQ(read(kIpv4, a, b), (Numbers{7, 8}));
    }
  }
}

// Nobody has told the order of the counter's bytes; datagrams of other sizes come before it.
TEST_F(Pcap, PacketsShowTheOrderOfTheirCounter) {
  for (const bool is_little : {false, true}) {
    std::vector<Bytes> frames{ethernet(ip(udp(Bytes(99, 1))))};
    for (uint64_t n = 250; n < 280; ++n) {
      Bytes packet = raw(n);
      if (is_little) std::reverse(packet.begin(), packet.begin() + 8);
      frames.push_back(ethernet(ip(udp(packet))));
    }
    const auto source = open(capture(frames));
    EXPECT_EQ(source->shape().number.order, is_little ? ByteOrder::little : ByteOrder::big);
    EXPECT_FALSE(source->shape().is_open());
    EXPECT_EQ(source->unusable(), 1U);
    std::vector<std::byte> packet(shape_.packet_bytes());
    for (uint64_t n = 250; n < 280; ++n) {
      ASSERT_EQ(source->own_number(0), n);
      ASSERT_TRUE(source->fill(0, n, packet));
    }
    EXPECT_EQ(source->own_number(0), std::nullopt);
  }
}

TEST_F(Pcap, TimesAreThoseOfTheCapture) {
  for (const bool nano : {false, true}) {
    const auto source = open(capture({ethernet(ip(udp(raw(7))))}, {.nano = nano}));
    EXPECT_EQ(source->own_time_ns(0), 1'600'000'000'000'000'000 + (nano ? 999'999 : 999'999'000));
  }
}

TEST_F(Pcap, APassMoreIsLaterByWhatAPassLasts) {
  Bytes file =
      capture({ethernet(ip(udp(raw(7)))), ethernet(ip(udp(raw(8)))), ethernet(ip(udp(raw(9))))});
  const size_t record = 16 + ethernet(ip(udp(raw(7)))).size();
  for (size_t i = 0; i < 3; ++i) {  // 1 ms from each to the next
    const Bytes us = little(static_cast<uint32_t>(1000 * i));
    std::copy(us.begin(), us.end(), file.begin() + static_cast<ptrdiff_t>(24 + i * record + 4));
  }
  open(file);
  const auto source = make_pcap_source({.pcap = path_, .loop = true}, shape_, 1);
  std::vector<std::byte> packet(shape_.packet_bytes());
  for (int64_t i = 0; i < 9; ++i) {
    EXPECT_EQ(source->own_number(0), 7 + static_cast<uint64_t>(i));
    EXPECT_EQ(source->own_time_ns(0), 1'600'000'000'000'000'000 + i * 1'000'000);
    EXPECT_TRUE(source->fill(0, 0, packet));
  }
}

TEST_F(Pcap, TagsOptionsAndPaddingAreNoPartOfADatagram) {
  const Bytes tag = big(0x8100, 2) + big(5, 2);
  const Bytes outer = big(0x88a8, 2) + big(6, 2);
  const auto source = open(capture({
      ethernet(ip(udp(raw(1))), tag), ethernet(ip(udp(raw(2))), outer + tag),
      ethernet(ip(udp(raw(3)), 0, 17, 10)), ethernet(ip(udp(raw(4))) + Bytes(18, 0)),
      ethernet(ip(udp(raw(5)), 0x4000)),  // don't fragment
  }));
  EXPECT_EQ(source->unusable(), 0U);
  EXPECT_EQ(numbers(*source), (Numbers{1, 2, 3, 4, 5}));
}

TEST_F(Pcap, WhatIsNoDatagramOfTheShapeIsCounted) {
  Bytes short_header = ip(udp(raw(1)));
  short_header[0] = 0x44;
  Bytes version6 = ip(udp(raw(1)));
  version6[0] = 0x65;
  Bytes too_long = ip(udp(raw(1)));
  too_long[25]++;  // the datagram's length, beyond what was kept of it
  Bytes no_length = ip(udp(raw(1)));
  no_length[24] = no_length[25] = 0;
  const std::vector<Bytes> wrong{
      {},
      Bytes(13, 0),
      ethernet({}),
      Bytes(12, 0) + big(0x8100, 2),                 // cut off in a tag
      Bytes(12, 0) + big(0x86dd, 2) + Bytes(60, 0),  // IPv6
      Bytes(12, 0) + big(0x0806, 2) + Bytes(28, 0),  // ARP
      ethernet(ip(udp(raw(1)), 0, 6)),               // TCP
      ethernet(ip(udp(raw(1)), 0x2000)),             // the first fragment
      ethernet(ip(udp(raw(1)), 0x0010)),             // another one
      ethernet(short_header),
      ethernet(version6),
      ethernet(too_long),
      ethernet(no_length),
      ethernet(ip({0, 1, 2})),
      ethernet(ip(udp(raw(1) + Bytes{0}))),  // a byte more
      ethernet(Bytes(20, 0x4f)),             // header longer than the packet
  };
  std::vector<Bytes> frames = wrong;
  frames.push_back(ethernet(ip(udp(raw(9)))));
  const auto source = open(capture(frames));
  EXPECT_EQ(source->unusable(), wrong.size());
  EXPECT_EQ(numbers(*source), (Numbers{9}));
}

TEST_F(Pcap, AFileThatIsCutOffHasWhatWasWholeBefore) {
  const Bytes first = capture({ethernet(ip(udp(raw(1))))});
  const Bytes both = capture({ethernet(ip(udp(raw(1)))), ethernet(ip(udp(raw(2))))});
  for (size_t size = first.size(); size <= both.size(); ++size) {
    const auto source = open({both.begin(), both.begin() + static_cast<ptrdiff_t>(size)});
    EXPECT_EQ(numbers(*source), size < both.size() ? (Numbers{1}) : (Numbers{1, 2})) << size;
    EXPECT_EQ(source->unusable(), 0U);
  }
}

// As the sockets of a receiver: by port, whichever of them is in the file first.
TEST_F(Pcap, AStreamForEachPort) {
  const auto source = open(capture({
                               ethernet(ip(udp(raw(10), 2))),
                               ethernet(ip(udp(raw(20), 1))),
                               ethernet(ip(udp(raw(30), 3))),  // more than are asked for
                               ethernet(ip(udp(raw(11), 2))),
                           }),
                           2);
  EXPECT_EQ(numbers(*source, 0), (Numbers{20}));
  EXPECT_EQ(numbers(*source, 1), (Numbers{10, 11}));
  EXPECT_EQ(source->unusable(), 1U);
}

TEST_F(Pcap, NumbersFromNowhereAreUnusableAndACountThatBeginsAnewIsNot) {
  std::vector<Bytes> frames;
  Numbers expected;
  const auto add = [&](uint64_t number) {
    frames.push_back(ethernet(ip(udp(raw(number)))));
    expected.push_back(number);
  };
  frames.push_back(ethernet(ip(udp(raw(uint64_t{1} << 50)))));
  for (uint64_t n = 0; n < 20; ++n) add(900'000'000 + n);
  frames.push_back(ethernet(ip(udp(raw(3)))));
  for (uint64_t n = 20; n < 40; ++n) add(900'000'000 + n);
  for (uint64_t n = 0; n < 20; ++n) add(n);             // set anew
  for (uint64_t n = 0; n < 5; ++n) add(1'000'000 + n);  // behind an outage, at the end of the file
  const auto source = open(capture(frames));
  EXPECT_EQ(numbers(*source), expected);
  EXPECT_EQ(source->unusable(), 2U);
}

TEST_F(Pcap, KnowsTheLowestOfThePacketsThatAreNext) {
  std::vector<Bytes> frames;
  const auto add = [&](uint64_t number) { frames.push_back(ethernet(ip(udp(raw(number))))); };
  for (const uint64_t n : {6, 2, 3, 4, 5, 7, 8, 9, 1}) add(900'000'000 + n);
  add(900'000'010);
  for (uint64_t n = 0; n < 20; ++n) add(n);  // set anew
  const auto source = open(capture(frames));
  std::array<std::byte, 28> packet{};
  EXPECT_EQ(source->lowest_own_number(0), 900'000'002U);  // the ninth is too far behind
  ASSERT_TRUE(source->fill(0, 0, packet));
  EXPECT_EQ(source->lowest_own_number(0), 900'000'001U);
  for (int i = 0; i < 8; ++i) ASSERT_TRUE(source->fill(0, 0, packet));
  EXPECT_EQ(source->lowest_own_number(0), 900'000'010U);  // what follows is of another count
  for (int i = 0; i < 21; ++i) ASSERT_TRUE(source->fill(0, 0, packet));
  EXPECT_EQ(source->lowest_own_number(0), std::nullopt);
}

TEST_F(Pcap, WhatIsNoCaptureIsRefused) {
  const Bytes good = capture({ethernet(ip(udp(raw(1))))});
  EXPECT_EQ(refusal(good), "none");
  EXPECT_EQ(refusal({good.begin(), good.begin() + 23}), " is no pcap file");
  EXPECT_EQ(refusal(big(0x0a0d0d0a, 4) + Bytes(40, 0)),
            " is no classic pcap file (editcap -F pcap makes one of others)");
  EXPECT_EQ(refusal(capture({}, {.link = 105})),
            ": its kind of link, 105, is not known; capture on an Ethernet interface");
  EXPECT_EQ(refusal(capture({})), " has packets of this shape for fewer streams");
  EXPECT_EQ(
      refusal(capture({ethernet(ip(udp({1, 2, 3})))})),
      " has packets of this shape for fewer streams; the first that is none: 3 bytes, not 28");
}

}  // namespace
}  // namespace weft::stream
