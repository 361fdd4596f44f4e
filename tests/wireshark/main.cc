// Writes a capture of WDP datagrams, and on standard output a line of JSON for each: its name, and
// what a dissector has to show.
//
//   wdp_capture messages FILE              each kind of message once
//   wdp_capture mutations FILE SEED COUNT  damaged, cut, lengthened, or nothing but random bytes
//   wdp_capture cut FILE SEED COUNT        whole datagrams of which the capture has the beginning
//   wdp_capture foreign FILE SEED COUNT    what other protocols might send

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "base/draw.h"
#include "tests/support/bundles.h"
#include "tests/wireshark/example.h"
#include "trace/pcapng.h"
#include "wire/wdp_bundle.h"
#include "wire/wdp_crc.h"

namespace weft::test {
namespace {

using namespace wire;

class File {
 public:
  explicit File(const char* name) : file_(std::fopen(name, "wb")) {
    if (file_ == nullptr) {
      std::perror(name);
      std::exit(1);
    }
    const auto head = trace::file_head("examples");
    write(head);
  }
  ~File() {
    if (std::fclose(file_) != 0) std::abort();
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  void datagram(Bytes bytes, size_t kept) {
    const trace::Endpoint a{Gid::from_ipv4(0xc0000201), 40'001};
    const trace::Endpoint b{Gid::from_ipv4(0xc0000202), 50'003};
    const trace::Headers headers = trace::udp_headers(a, b, bytes.size());
    const IoVec piece{const_cast<std::byte*>(bytes.data()), bytes.size()};
    const trace::Packet packet{.at = 1'000'000'000LL + ++written_,
                               .direction = trace::Direction::out,
                               .headers = headers.bytes(),
                               .payload = {&piece, 1},
                               .kept = kept,
                               .size = bytes.size()};
    const trace::BlockEnds ends{packet};
    write(ends.front());
    write(headers.bytes());
    write(bytes.first(kept));
    write(ends.back());
  }

 private:
  void write(Bytes bytes) {
    if (std::fwrite(bytes.data(), 1, bytes.size(), file_) != bytes.size()) std::abort();
  }
  std::FILE* file_;
  int64_t written_ = 0;
};

// Why a receiver drops it, as weft's own parsers have it; "" where it does not.
std::string drop_of(Bytes d) {
  const auto common = WdpCommon::parse(d);
  if (!common) return counter_name(common.error());
  const auto judged = [&](const auto& parsed, bool data) -> std::string {
    if (!parsed) return counter_name(parsed.error());
    const bool bad = data && common->flags.crc && !wdp_crc_matches(d);
    return bad ? counter_name(WdpDrop::bad_crc) : "";
  };
  if (common->wdp_class == WdpBundle::kClass) return judged(test::check_bundle(*common, d), true);
  switch (common->wdp_class) {
    case WdpClass::ctl:
      return judged(WdpCtl::parse(d), false);
    case WdpClass::ud:
      return judged(WdpUd::parse(d), true);
    case WdpClass::rd_ack:
      return judged(WdpAck::parse(d), false);
    default:
      return judged(WdpData::parse(d), true);
  }
}

void messages(File& file) {
  for (const Example& e : all_examples()) {
    file.datagram(e.bytes, e.bytes.size());
    std::printf("{\"name\": \"%s\", \"drop\": \"%s\", \"fields\": {", e.name.c_str(),
                drop_of(e.bytes).c_str());
    const char* comma = "";
    for (const auto& [field, values] : e.fields) {
      std::printf("%s\"%s\": [", comma, field.c_str());
      comma = "";
      for (const std::string& v : values) {
        std::printf("%s\"%s\"", comma, v.c_str());
        comma = ", ";
      }
      std::printf("]");
      comma = ", ";
    }
    std::printf("}}\n");
  }
}

// A few bytes of the header, where most checks look, or anywhere.
void damage(std::vector<std::byte>& d, Random& random) {
  for (uint64_t n = draw_size(random, 4); n > 0 && !d.empty(); --n) {
    const size_t within = draw_chance(random, 0.8) ? std::min<size_t>(d.size(), 64) : d.size();
    const size_t at = draw_below(random, within);
    // A bit, or a number at the edge of what is allowed, or any.
    const auto value = std::to_integer<uint64_t>(d[at]);
    switch (draw_below(random, 4)) {
      case 0:
        d[at] = std::byte{0};
        break;
      case 1:
        d[at] = std::byte{0xff};
        break;
      case 2:
        d[at] = static_cast<std::byte>(value ^ 1U << draw_below(random, 8));
        break;
      default:
        d[at] = static_cast<std::byte>(value + draw_below(random, 256));
    }
  }
}

std::vector<std::byte> mutated(const std::vector<Example>& all, Random& random) {
  std::vector<std::byte> d = all[draw_below(random, all.size())].bytes;
  if (d.size() > 2000) d.resize(2000);
  const uint64_t what = draw_below(random, 10);
  if (what == 0) {
    d.resize(draw_below(random, 300));
    for (std::byte& b : d) b = static_cast<std::byte>(random.next());
    if (d.size() > 1) {
      d[0] = std::byte{0xd1};
      d[1] = static_cast<std::byte>(random.next() % 0x60);
    }
  } else if (what == 1) {
    d.resize(draw_below(random, d.size() + 1));
  } else if (what == 2) {
    d.resize(d.size() + draw_size(random, 100));
  } else if (what == 3 && d.size() >= 64) {
    std::fill_n(d.begin() + static_cast<ptrdiff_t>(4 * draw_below(random, 16)), 4, std::byte{0});
  } else {
    damage(d, random);
  }
  // A CTL message has its length in it, which would hide what else is wrong.
  if (d.size() >= WdpCtl::kSize && d[1] == std::byte{8} && draw_chance(random, 0.5)) {
    store_be(d.data() + 10, static_cast<uint16_t>(d.size()));
  }
  // Else no check behind that of the CRC would be reached.
  if (d.size() >= WdpCommon::kSize && draw_chance(random, 0.8)) seal_wdp(d);
  return d;
}

void mutations(File& file, Random& random, uint64_t count) {
  const auto all = all_examples();
  for (uint64_t i = 0; i < count; ++i) {
    const auto d = mutated(all, random);
    file.datagram(d, d.size());
    std::printf("{\"name\": \"%llu\", \"drop\": \"%s\"}\n", static_cast<unsigned long long>(i),
                drop_of(d).c_str());
  }
}

void cut(File& file, Random& random, uint64_t count) {
  const auto all = all_examples();
  for (uint64_t i = 0; i < count; ++i) {
    const Example& e = all[i % all.size()];
    const uint64_t most =
        draw_chance(random, 0.5) ? std::min<size_t>(130, e.bytes.size()) : e.bytes.size();
    const uint64_t kept = draw_below(random, most);
    file.datagram(e.bytes, kept);
    std::printf("{\"name\": \"%s, %llu of %zu\", \"kept\": %llu}\n", e.name.c_str(),
                static_cast<unsigned long long>(kept), e.bytes.size(),
                static_cast<unsigned long long>(kept));
  }
}

// Random, but for a first byte that is that of WDP.
void foreign(File& file, Random& random, uint64_t count) {
  for (uint64_t i = 0; i < count; ++i) {
    std::vector<std::byte> d(draw_size(random, 1400));
    for (std::byte& b : d) b = static_cast<std::byte>(random.next());
    d[0] = std::byte{0xd1};
    file.datagram(d, d.size());
    std::printf("{\"name\": \"%llu\"}\n", static_cast<unsigned long long>(i));
  }
}

int run(int count, char** words) {
  const std::string_view what = count > 1 ? words[1] : "";
  if (count < 3 || (what != "messages" && count < 5)) {
    std::fprintf(stderr, "wdp_capture messages|mutations|cut|foreign FILE [SEED COUNT]\n");
    return 2;
  }
  File file{words[2]};
  SeededRandom random{count > 3 ? std::strtoull(words[3], nullptr, 10) : 0};
  const uint64_t n = count > 4 ? std::strtoull(words[4], nullptr, 10) : 0;
  if (what == "messages") messages(file);
  if (what == "mutations") mutations(file, random, n);
  if (what == "cut") cut(file, random, n);
  if (what == "foreign") foreign(file, random, n);
  return 0;
}

}  // namespace
}  // namespace weft::test

int main(int argc, char** argv) {
  return weft::test::run(argc, argv);
}
