/* Takes blocks out of the ring of `weft stream recv --ring NAME` and compares every byte of every
 * packet with what `weft stream send` makes by its formula (docs/streams-reference.md): samples of
 * a telescope, of --file or of --pcap are all "wrong" to it. Any C compiler, no library; in weft's
 * folder, on the machine that receives:
 *
 *   cc -O2 -I include -o stream_consumer examples/stream_consumer.c
 *   build/release/bin/weft stream recv --ring sky --once &
 *   ./stream_consumer sky &
 *   build/release/bin/weft stream send 127.0.0.1 --duration 10
 *
 * One thread takes all streams by turns. --slow MS: takes so long over each block, as a busy
 * correlator would. Prints what it saw when the receiver ends, as JSON: all is well when "wrong" is
 * 0. Exit status: 0, or 1 when a byte was wrong. */
#include <weft/stream_ring.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TABLE 65536u

struct sums {
  unsigned long long blocks, packets, missing, wrong, jumps;
};

static uint8_t table[TABLE];

/* Part i of the table: noise from a hash, and a tone that turns once in 8 samples. */
static int part(uint64_t i) {
  static const int cosine[8] = {64, 45, 0, -45, -64, -45, 0, 45};
  static const int sine[8] = {0, 45, 64, 45, 0, -45, -64, -45};
  const unsigned turn = (unsigned)(i / 4 % 8);
  uint64_t x = (i + 1) * 0x9e3779b97f4a7c15u;
  x ^= x >> 29;
  x *= 0xbf58476d1ce4e5b9u;
  x ^= x >> 32;
  return (int)(x & 15) + (int)(x >> 8 & 15) + (int)(x >> 16 & 15) + (int)(x >> 24 & 15) - 30 +
         (i % 2 == 0 ? cosine[turn] : sine[turn]);
}

static void fill_table(uint32_t bits) {
  const uint32_t bytes = bits < 8 ? 1 : bits / 8;
  for (uint32_t i = 0; i < TABLE; ++i)
    table[i] = (uint8_t)((uint32_t)part(i / bytes) >> (8 * (i % bytes)));
}

static uint64_t number(const uint8_t* p, unsigned bytes, int big) {
  uint64_t value = 0;
  for (unsigned i = 0; i < bytes; ++i) value |= (uint64_t)p[i] << (8 * (big ? bytes - 1 - i : i));
  return value;
}

/* The number that the packet's own header gives it. */
static uint64_t number_of(const struct weft_stream_ring* ring, const uint8_t* p) {
  const uint32_t payload = ring->packet_bytes - ring->header_bytes;
  switch (ring->format) {
    case WEFT_STREAM_RSP: /* seconds, and slices of 1024 samples in them, at 200 MHz */
      return ((number(p + 8, 4, 0) * 200000000u + 512) / 1024 + number(p + 12, 4, 0)) / p[7];
    case WEFT_STREAM_SPEAD: /* heap counter x packets of a heap + place in the heap */
      return number(p + 10, 6, 1) * (number(p + 18, 6, 1) / payload) +
             number(p + 26, 6, 1) / payload;
    default:
      return number(p, 8, 1);
  }
}

static int right(const struct weft_stream_ring* ring, uint32_t stream, uint64_t n,
                 const uint8_t* packet) {
  const uint32_t size = ring->packet_bytes - ring->header_bytes;
  const uint8_t* payload = packet + ring->header_bytes;
  uint32_t at = (uint32_t)((n * 167 + stream * 59u) % 512 * 128);
  if (number_of(ring, packet) != n) return 0;
  for (uint32_t done = 0; done < size;) {
    const uint32_t left = size - done;
    const uint32_t piece = left < TABLE - at ? left : TABLE - at;
    if (memcmp(payload + done, table + at, piece) != 0) return 0;
    done += piece;
    at = 0;
  }
  return 1;
}

/* Looks at the oldest block of a stream; 0 when there is none. */
static int take(struct weft_stream* s, struct sums* sums, uint64_t* next, int slow_ms) {
  const struct weft_stream_block* block = weft_stream_front(s);
  unsigned long long wrong = 0;
  if (block == NULL) return 0;
  for (uint32_t i = 0; i < block->packets; ++i) {
    const uint8_t* packet = weft_stream_packet(s, block, i);
    if (packet == NULL) {
      ++sums->missing;
      continue;
    }
    ++sums->packets;
    if (!right(s->ring, s->stream, block->number * block->packets + i, packet)) ++wrong;
  }
  if (slow_ms > 0) {
    const struct timespec t = {slow_ms / 1000, slow_ms % 1000 * 1000000L};
    nanosleep(&t, NULL);
    /* It must still be what it was. */
    for (uint32_t i = 0; i < block->packets; ++i) {
      const uint8_t* packet = weft_stream_packet(s, block, i);
      if (packet != NULL && !right(s->ring, s->stream, block->number * block->packets + i, packet))
        ++wrong;
    }
  }
  sums->wrong += wrong;
  ++sums->blocks;
  if (*next != 0 && block->number != *next) ++sums->jumps;
  *next = block->number + 1;
  weft_stream_release(s);
  return 1;
}

int main(int argc, char** argv) {
  struct sums sums = {0};
  struct weft_stream_ring* ring = NULL;
  struct weft_stream* streams;
  uint64_t* next;
  int slow_ms = 0;
  if (argc == 4 && strcmp(argv[2], "--slow") == 0) slow_ms = atoi(argv[3]);
  if (argc < 2 || (argc != 2 && slow_ms <= 0)) {
    fprintf(stderr, "usage: %s RING [--slow MILLISECONDS]\n", argv[0]);
    return 2;
  }
  ring = weft_stream_open(argv[1]);
  if (ring == NULL) {
    perror(argv[1]);
    return 1;
  }
  fill_table(ring->bits);
  streams = (struct weft_stream*)calloc(ring->streams, sizeof *streams);
  next = (uint64_t*)calloc(ring->streams, sizeof *next);
  if (streams == NULL || next == NULL) return 1;
  for (uint32_t i = 0; i < ring->streams; ++i) {
    if (weft_stream_attach(ring, i, &streams[i]) != 0) {
      perror("attach");
      return 1;
    }
  }
  fprintf(stderr, "attached\n");
  for (;;) {
    const int alive = weft_stream_alive(ring); /* before the last look */
    const uint32_t seen = __atomic_load_n(&ring->signal, __ATOMIC_ACQUIRE);
    int any = 0;
    for (uint32_t i = 0; i < ring->streams; ++i) any |= take(&streams[i], &sums, &next[i], slow_ms);
    if (any) continue;
    if (!alive) break;
    /* One word for all streams; who takes one stream calls weft_stream_wait(). */
    const struct timespec t = {1, 0};
    syscall(SYS_futex, &ring->signal, FUTEX_WAIT, seen, &t, NULL, 0);
  }
  for (uint32_t i = 0; i < ring->streams; ++i) weft_stream_detach(&streams[i]);
  printf(
      "{\"blocks\": %llu, \"packets\": %llu, \"missing\": %llu, \"wrong\": %llu, \"jumps\": "
      "%llu}\n",
      sums.blocks, sums.packets, sums.missing, sums.wrong, sums.jumps);
  free(next);
  free(streams);
  return sums.wrong != 0;
}
