/* Takes one stream of RSP packets out of the ring of `weft stream recv --ring NAME`, as a client of
 * PSRDADA takes its data: a header of 4096 bytes in ASCII, blocks of samples one after the other,
 * and the end of data; then, where the stream goes on elsewhere, the next header. A program that
 * was written for PSRDADA calls dada_open() where it waited for a header block, dada_next() where
 * it opened a data block, and needs nothing of PSRDADA.
 *
 * Samples are in the order of time, channel and polarisation (docs/streams-reference.md has the
 * header and each byte, under DADA). What is missing is zeroes. This program writes each
 * observation into a file, PREFIX.0000.dada and so on. Any C compiler, no library; in weft's
 * folder:
 *
 *   cc -O2 -I include -o dada_consumer examples/dada_consumer.c
 *   build/release/bin/weft stream recv --ring sky --once &
 *   ./dada_consumer sky 0 night &
 *   build/release/bin/weft stream send 127.0.0.1 --duration 10
 *
 * Exit status: 0 when the receiver ended, 1 when something failed. */
#include <weft/stream_ring.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HEADER 4096

struct dada_reader {
  struct weft_stream_ring* ring;
  struct weft_stream stream;
  char header[HEADER]; /* of the observation */
  uint8_t* samples;    /* of a block */
  uint32_t payload;    /* bytes of a packet's samples */
  uint64_t written;    /* number behind the last packet that was given out */
  int observing;
  const struct weft_stream_block* front; /* not released yet */
};

static uint32_t word(const uint8_t* p) {
  return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

/* Nanoseconds since 1970 of a packet's first sample: slices of 1024 samples, counted through. */
static int64_t time_of(const uint8_t* packet) {
  const uint64_t megahertz = packet[1] & 0x80 ? 200 : 160;
  const uint64_t first = (word(packet + 8) * megahertz * 1000000 + 512) / 1024;
  return (int64_t)((first + word(packet + 12)) * (1024000 / megahertz));
}

/* The header of an observation that begins with this packet. */
static void make_header(struct dada_reader* r, const uint8_t* packet, uint64_t number) {
  const int64_t ns = time_of(packet);
  const time_t second = (time_t)(ns / 1000000000);
  const unsigned clock = packet[1] & 0x80 ? 200 : 160;
  const unsigned slice = r->payload / packet[7]; /* bytes of all beamlets */
  char utc[32] = "";
  struct tm day;
  if (gmtime_r(&second, &day) != NULL) strftime(utc, sizeof utc, "%Y-%m-%d-%H:%M:%S", &day);
  memset(r->header, 0, sizeof r->header);
  snprintf(r->header, sizeof r->header,
           "HEADER           DADA\nHDR_VERSION      1.0\nHDR_SIZE         %d\n"
           "DADA_VERSION     1.0\n"
           "UTC_START        %s\nPICOSECONDS      %" PRId64
           "\nOBS_OFFSET       0\n"
           "NBIT             %u\nNDIM             2\nNPOL             2\nNCHAN            %u\n"
           "ORDER            TFP\nTSAMP            %.4g\nRESOLUTION       %u\n"
           "BYTES_PER_SECOND %.0f\nTELESCOPE        LOFAR\nINSTRUMENT       LOFAR_RSP\n"
           "STATION_ID       %u\nCLOCK            %u\nSTREAM           %u\n"
           "FIRST_PACKET     %" PRIu64 "\n# end of header\n",
           HEADER, utc, ns % 1000000000 * 1000, r->ring->bits, packet[6], 1024.0 / clock, slice,
           slice * (clock * 1e6 / 1024), packet[4] | (unsigned)packet[5] << 8, clock,
           r->stream.stream, number);
}

/* One packet's samples: beamlet by beamlet in the packet, slice by slice for DADA. */
static void turn(const uint8_t* packet, uint8_t* to, uint32_t payload) {
  const uint32_t beamlets = packet[6];
  const uint32_t slices = packet[7];
  const uint32_t sample = payload / beamlets / slices;
  const uint8_t* from = packet + 16;
  for (uint32_t b = 0; b < beamlets; ++b) {
    for (uint32_t s = 0; s < slices; ++s, from += sample)
      memcpy(to + (s * beamlets + b) * sample, from, sample);
  }
}

static void release(struct dada_reader* r) {
  weft_stream_release(&r->stream);
  r->front = NULL;
}

/* Waits for a block with a packet in it; 0 when no more will come. */
static int find_block(struct dada_reader* r, uint32_t* first, uint32_t* end) {
  for (;;) {
    if (r->front == NULL) {
      int found;
      while ((found = weft_stream_wait(&r->stream, 1000)) == 0) {
      }
      if (found < 0) return 0;
      r->front = weft_stream_front(&r->stream);
    }
    if (r->front != NULL) {
      *first = 0;
      *end = r->front->packets;
      while (*first < *end && weft_stream_packet(&r->stream, r->front, *first) == NULL) ++*first;
      while (*end > *first && weft_stream_packet(&r->stream, r->front, *end - 1) == NULL) --*end;
      if (*first < *end) return 1;
      release(r);
    }
  }
}

/* Opens stream `stream` of a ring. -1 and errno. */
int dada_open(struct dada_reader* r, const char* name, uint32_t stream) {
  memset(r, 0, sizeof *r);
  r->ring = weft_stream_open(name);
  if (r->ring == NULL) return -1;
  if (r->ring->format != WEFT_STREAM_RSP) {
    errno = EPROTONOSUPPORT;
    return -1;
  }
  r->payload = r->ring->packet_bytes - r->ring->header_bytes;
  r->samples = (uint8_t*)malloc((size_t)r->ring->packets_per_block * r->payload);
  if (r->samples == NULL) return -1;
  return weft_stream_attach(r->ring, stream, &r->stream);
}

/* Waits for the next observation; its header, or NULL when no more will come. */
const char* dada_header(struct dada_reader* r) {
  uint32_t first, end;
  if (!find_block(r, &first, &end)) return NULL;
  r->written = r->front->number * r->front->packets + first;
  r->observing = 1;
  make_header(r, weft_stream_packet(&r->stream, r->front, first), r->written);
  return r->header;
}

/* The next samples of the observation, good until the next call; NULL at the end of its data: the
 * receiver ended, or the stream goes on behind a hole that is larger than the ring, or with a count
 * that began anew. */
const uint8_t* dada_next(struct dada_reader* r, size_t* bytes) {
  const uint64_t reach = (uint64_t)r->ring->blocks * r->ring->packets_per_block;
  uint32_t first, end, from, packets;
  uint64_t begin;
  if (!r->observing || !find_block(r, &first, &end)) return NULL;
  begin = r->front->number * r->front->packets;
  if (begin + end <= r->written || begin + first > r->written + reach) {
    r->observing = 0;
    return NULL;
  }
  if (begin > r->written) { /* blocks of which nothing came: as many zeroes */
    const uint64_t hole = begin - r->written;
    packets = hole < r->front->packets ? (uint32_t)hole : r->front->packets;
    memset(r->samples, 0, (size_t)packets * r->payload);
  } else {
    from = (uint32_t)(r->written - begin);
    packets = end - from;
    for (uint32_t i = 0; i < packets; ++i) {
      const uint8_t* packet = weft_stream_packet(&r->stream, r->front, from + i);
      uint8_t* to = r->samples + (size_t)i * r->payload;
      if (packet != NULL) {
        turn(packet, to, r->payload);
      } else {
        memset(to, 0, r->payload);
      }
    }
    release(r);
  }
  r->written += packets;
  *bytes = (size_t)packets * r->payload;
  return r->samples;
}

void dada_close(struct dada_reader* r) {
  weft_stream_detach(&r->stream);
  weft_stream_close(r->ring);
  free(r->samples);
}

int main(int argc, char** argv) {
  struct dada_reader reader;
  const char* header;
  unsigned observation = 0;
  if (argc != 4) {
    fprintf(stderr, "usage: %s RING STREAM PREFIX\n", argv[0]);
    return 2;
  }
  if (dada_open(&reader, argv[1], (uint32_t)strtoul(argv[2], NULL, 10)) != 0) {
    perror(argv[1]);
    return 1;
  }
  fprintf(stderr, "attached\n");
  while ((header = dada_header(&reader)) != NULL) {
    char path[4096];
    const uint8_t* samples;
    size_t bytes;
    unsigned long long sum = 0;
    FILE* file;
    snprintf(path, sizeof path, "%s.%04u.dada", argv[3], observation++);
    file = fopen(path, "wb");
    if (file == NULL || fwrite(header, 1, HEADER, file) != HEADER) {
      perror(path);
      return 1;
    }
    while ((samples = dada_next(&reader, &bytes)) != NULL) {
      sum += bytes;
      if (fwrite(samples, 1, bytes, file) != bytes) {
        perror(path);
        return 1;
      }
    }
    if (fclose(file) != 0) {
      perror(path);
      return 1;
    }
    printf("{\"file\": \"%s\", \"bytes\": %llu}\n", path, sum);
    fflush(stdout);
  }
  dada_close(&reader);
  return 0;
}
