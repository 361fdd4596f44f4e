/* What an FPGA has to do to feed `weft stream recv --static`, as a program: LOFAR packets by RDMA
 * Writes over UDP, with nothing of weft and no word from the receiver. docs/streams.md has the
 * datagrams byte by byte.
 *
 *   cc -O2 -o fpga_sender examples/fpga_sender.c
 *   weft stream recv --static 192.0.2.7 --ring sky &        (on the receiver, 192.0.2.1)
 *   ./fpga_sender to=192.0.2.1 rate=12207                   (at 192.0.2.7)
 *
 * port= index= stag=: as the receiver says; block= blocks=: as it was told. mtu=, rate= (packets a
 * second), packets=, first= (number; without: by the clock), stream=. lose=P seed=S leaves out each
 * datagram but those of the first and the last packet with probability P / 1000000; the numbers of
 * the packets that lost some, also of what the system did not send, are printed as JSON. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { HEADER = 48, PACKET = 7824, SLOT = 7840, SLICES = 16, BEAMLETS = 61, TABLE = 65536 };
enum { BELOW = 20 + 8 }; /* headers of IPv4 and UDP */

static uint64_t option(int argc, char** argv, const char* name, uint64_t usual) {
  const size_t n = strlen(name);
  for (int i = 1; i < argc; ++i)
    if (strncmp(argv[i], name, n) == 0 && argv[i][n] == '=') return strtoull(argv[i] + n + 1, 0, 0);
  return usual;
}

static void big(uint8_t* p, unsigned bytes, uint64_t v) {
  while (bytes-- > 0) *p++ = (uint8_t)(v >> (8 * bytes));
}

static void little(uint8_t* p, unsigned bytes, uint64_t v) {
  for (unsigned i = 0; i < bytes; ++i) p[i] = (uint8_t)(v >> (8 * i));
}

/* The samples: those that examples/stream_consumer.c knows. */
static void fill_table(uint8_t* table) {
  static const int tone[8] = {64, 45, 0, -45, -64, -45, 0, 45};
  for (uint64_t i = 0; i < TABLE / 2; ++i) {
    uint64_t x = (i + 1) * 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 29) * 0xbf58476d1ce4e5b9u;
    x ^= x >> 32;
    little(table + 2 * i, 2,
           (x & 15) + (x >> 8 & 15) + (x >> 16 & 15) + (x >> 24 & 15) - 30 +
               (uint64_t)tone[(i / 4 + (i % 2 ? 6 : 0)) % 8]);
  }
}

/* Packet n, as a station's board sends it over plain UDP. */
static void build(uint8_t* p, uint64_t n, uint64_t stream, const uint8_t* table) {
  const uint64_t slice = n * SLICES, second = slice * 1024 / 200000000;
  memcpy(p, "\3\0\0\0\0\0", 6);
  p[1] = (uint8_t)(0x80 | stream % 4);
  p[4] = (uint8_t)(1 + stream / 4);
  p[6] = BEAMLETS;
  p[7] = SLICES;
  little(p + 8, 4, second);
  little(p + 12, 4, slice - (second * 200000000 + 512) / 1024);
  const uint64_t from = (n * 167 + stream * 59) % 512 * 128;
  for (uint32_t j = 0; j < PACKET - 16; ++j) p[16 + j] = table[(from + j) % TABLE];
}

int main(int argc, char** argv) {
  const uint64_t port = option(argc, argv, "port", 4348), stream = option(argc, argv, "stream", 0);
  const uint64_t token = port << 8 | option(argc, argv, "index", stream + 1);
  const uint64_t stag = option(argc, argv, "stag", (stream + 1) << 8);
  const uint64_t block = option(argc, argv, "block", 256),
                 blocks = option(argc, argv, "blocks", 16);
  const uint64_t block_bytes = (block * SLOT + 4095) / 4096 * 4096;
  const uint64_t mtu = option(argc, argv, "mtu", 1500);
  const uint64_t rate = option(argc, argv, "rate", 12207), lose = option(argc, argv, "lose", 0);
  const uint64_t packets = option(argc, argv, "packets", UINT64_MAX), begin = (uint64_t)time(0);
  const uint64_t first = option(argc, argv, "first", begin * 200000000 / 1024 / SLICES);
  uint64_t chance = option(argc, argv, "seed", 1) * 0x9e3779b97f4a7c15u, lost = 0;
  struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
  static uint8_t table[TABLE], packet[PACKET], datagram[65536];
  struct timespec start, due;
  const char* text = argc > 1 && strncmp(argv[1], "to=", 3) == 0 ? argv[1] + 3 : "";
  const char* comma = "";
  const int fd = socket(AF_INET, SOCK_DGRAM, 0);
  if (fd < 0 || inet_pton(AF_INET, text, &to.sin_addr) != 1 || rate == 0) return 2;
  if (block == 0 || blocks == 0 || mtu < BELOW + HEADER + 16 || mtu > 65535) return 2;
  const uint32_t stride = (uint32_t)(mtu - BELOW - HEADER) / 16 * 16;
  const uint32_t parts = (PACKET + stride - 1) / stride; /* datagrams of a packet */
  fill_table(table);
  clock_gettime(CLOCK_MONOTONIC, &start);
  printf("{\"hurt\": [");
  for (uint64_t k = 0; k < packets; ++k) {
    const uint64_t n = first + k; /* all that follows is made of this number: nothing to remember */
    const uint64_t place = n / block % blocks * block_bytes + n % block * SLOT;
    uint64_t hurt = 0;
    due = start;
    due.tv_nsec += (long)(k % rate * 1000000000 / rate);
    due.tv_sec += (time_t)(k / rate + (uint64_t)due.tv_nsec / 1000000000);
    due.tv_nsec %= 1000000000;
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, 0);
    build(packet, n, stream, table);
    for (uint32_t i = 0; i < parts; ++i) {
      const uint32_t offset = i * stride;
      const uint32_t bytes = i + 1 < parts ? stride : PACKET - offset;
      datagram[0] = 0xd1;                         /* magic and version */
      datagram[1] = 0x14;                         /* UC, has an immediate */
      datagram[2] = (uint8_t)token;               /* which of the port's queue pairs */
      datagram[3] = 0;                            /* an answer would go there: there is none */
      big(datagram + 4, 4, token);                /* the receiver's */
      big(datagram + 8, 4, n * parts + i);        /* PSN */
      big(datagram + 12, 4, 0);                   /* no CRC */
      big(datagram + 16, 4, n);                   /* MSN: a message for each packet */
      big(datagram + 20, 4, offset);              /* in the message */
      big(datagram + 24, 4, PACKET);              /* the message's bytes */
      datagram[28] = i + 1 < parts ? 0x81 : 0xc1; /* tagged, last */
      datagram[29] = 0x40;                        /* RDMA Write */
      big(datagram + 30, 2, stride);
      big(datagram + 32, 4, stag);
      big(datagram + 36, 4, n << 8);         /* the immediate: from packet n on, 1 packet */
      big(datagram + 40, 8, place + offset); /* where these bytes go */
      memcpy(datagram + HEADER, packet + offset, bytes);
      chance = chance * 6364136223846793005u + 1442695040888963407u;
      if ((k > 0 && k + 1 < packets && (chance >> 33) % 1000000 < lose) ||
          sendto(fd, datagram, HEADER + bytes, 0, (struct sockaddr*)&to, sizeof to) < 0) {
        ++lost;
        ++hurt;
      }
    }
    if (hurt > 0) {
      printf("%s%llu", comma, (unsigned long long)n);
      comma = ", ";
    }
  }
  printf("], \"lost\": %llu, \"first\": %llu}\n", (unsigned long long)lost,
         (unsigned long long)first);
  return 0;
}
