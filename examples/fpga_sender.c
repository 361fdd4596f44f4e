/* What an FPGA has to do to feed `weft stream recv --static`, as a program: LOFAR packets by RDMA
 * Writes over UDP, with nothing of weft and no word from the receiver. docs/streams-reference.md
 * has the datagrams byte by byte, and the commands of both sides. to= comes first, an address.
 * port= index= stag=: as the receiver says; block= blocks=: as it was told. mtu=, rate= (packets a
 * second), packets=, first= (number; without: by the clock), stream=. Exit status 1: the system did
 * not send all datagrams; 2: no packet can be cut so. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { HEADER = 48, PACKET = 7824, SLOT = 7840, SLICES = 16, BEAMLETS = 61, TABLE = 65536 };
enum { BELOW = 20 + 8 }; /* headers of IPv4 and UDP */
static char** words;

static uint64_t option(const char* name, uint64_t usual) {
  const size_t n = strlen(name);
  for (char** w = words; *w; ++w)
    if (strncmp(*w, name, n) == 0 && (*w)[n] == '=') return strtoull(*w + n + 1, 0, 0);
  return usual;
}

static void big(uint8_t* p, unsigned bytes, uint64_t v) {
  while (bytes-- > 0) *p++ = (uint8_t)(v >> (8 * bytes));
}

static void little(uint8_t* p, unsigned bytes, uint64_t v) {
  for (; bytes-- > 0; v >>= 8) *p++ = (uint8_t)v;
}

/* The samples: those that examples/stream_consumer.c knows. */
static void fill_table(uint8_t* table) {
  static const int tone[8] = {64, 45, 0, -45, -64, -45, 0, 45};
  for (uint64_t i = 0; i < TABLE / 2; ++i) {
    uint64_t x = (i + 1) * 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 29) * 0xbf58476d1ce4e5b9u;
    x ^= x >> 32;
    const int noise = (int)((x & 15) + (x >> 8 & 15) + (x >> 16 & 15) + (x >> 24 & 15)) - 30;
    little(table + 2 * i, 2, (uint64_t)(noise + tone[(i / 4 + i % 2 * 6) % 8]));
  }
}

/* Packet n, as a station's board sends it over plain UDP. */
static void build(uint8_t* p, uint64_t n, uint64_t stream, const uint8_t* table) {
  const uint64_t slice = n * SLICES, second = slice * 1024 / 200000000;
  big(p, 8, 0x0380000001000000 | stream % 4 << 48 | stream / 4 << 24 | BEAMLETS << 8 | SLICES);
  little(p + 8, 4, second);
  little(p + 12, 4, slice - (second * 200000000 + 512) / 1024);
  const uint64_t from = (n * 167 + stream * 59) % 512 * 128;
  for (uint32_t j = 0; j < PACKET - 16; ++j) p[16 + j] = table[(from + j) % TABLE];
}

int main(int argc, char** argv) {
  words = argv;
  const uint64_t port = option("port", 4348), stream = option("stream", 0);
  const uint64_t token = port << 8 | option("index", stream + 1);
  const uint64_t stag = option("stag", (stream + 1) << 8);
  const uint64_t block = option("block", 256), blocks = option("blocks", 16);
  const uint64_t block_bytes = (block * SLOT + 4095) / 4096 * 4096;
  const uint64_t mtu = option("mtu", 1500), rate = option("rate", 12207);
  const uint64_t packets = option("packets", UINT64_MAX);
  const uint64_t begin = (uint64_t)time(0) + 1; /* the full second at which the first one leaves */
  const uint64_t first = option("first", begin * 200000000 / 1024 / SLICES);
  struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
  const char* text = argc > 1 && strncmp(argv[1], "to=", 3) == 0 ? argv[1] + 3 : "";
  const int fd = socket(AF_INET, SOCK_DGRAM, 0);
  if (fd < 0 || inet_pton(AF_INET, text, &to.sin_addr) != 1 || rate == 0) return 2;
  if (block == 0 || blocks == 0 || mtu < BELOW + HEADER + 16 || mtu > 65535) return 2;
  const uint64_t stride = (mtu - BELOW - HEADER) / 16 * 16;
  const uint64_t parts = (PACKET + stride - 1) / stride; /* datagrams of a packet */
  static uint8_t table[TABLE], packet[PACKET], d[65536];
  int unsent = 0;
  fill_table(table);
  for (uint64_t k = 0; k < packets; ++k) {
    const uint64_t n = first + k; /* all that follows is made of this number: nothing to remember */
    const uint64_t place = n / block % blocks * block_bytes + n % block * SLOT;
    struct timespec due = {(time_t)(begin + k / rate), (long)(k % rate * 1000000000 / rate)};
    clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &due, 0);
    build(packet, n, stream, table);
    for (uint64_t i = 0; i < parts; ++i) {
      const uint64_t offset = i * stride, bytes = i + 1 < parts ? stride : PACKET - offset;
      big(d, 4, 0xd1140000 | (token & 255) << 8);      /* magic; UC with immediate; index */
      big(d + 4, 4, token);                            /* the receiver's */
      big(d + 8, 4, n * parts + i);                    /* PSN; behind it no CRC */
      big(d + 16, 4, n);                               /* MSN: a message for each packet */
      big(d + 20, 4, offset);                          /* in the message */
      big(d + 24, 4, PACKET);                          /* the message's bytes */
      big(d + 28, 2, i + 1 < parts ? 0x8140 : 0xc140); /* tagged, last; RDMA Write */
      big(d + 30, 2, stride);
      big(d + 32, 4, stag);
      big(d + 36, 4, n << 8);         /* the immediate: from packet n on, 1 packet */
      big(d + 40, 8, place + offset); /* where these bytes go */
      memcpy(d + HEADER, packet + offset, bytes);
      unsent |= sendto(fd, d, HEADER + bytes, 0, (struct sockaddr*)&to, sizeof to) < 0;
    }
  }
  return unsent;
}
