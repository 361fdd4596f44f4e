/* The ring that `weft stream recv --ring NAME` leaves in shared memory (/dev/shm/NAME), for
 * programs that take blocks out of it: C11 and C++, before other headers where the compiler has no
 * GNU extensions (-std=c11). Needs no library. docs/streams-reference.md explains it;
 * examples/stream_consumer.c uses it.
 *
 * A stream is a row of packets, each with a number. Packet n belongs to block n / packets_per_block
 * and lies there in slot n % packets_per_block. Each stream has its own blocks and one consumer.
 * The receiver publishes blocks in the order of their numbers; a block of which nothing came is not
 * published, so numbers may jump. The consumer looks at the oldest published block and releases it;
 * until then nothing gets into its memory. A consumer that is too slow loses whole blocks
 * (`overrun_packets`), and the stream goes on.
 *
 *   one consumer                                    the receiver
 *   weft_stream_attach()                            publishes block:  head + 1, wakes who sleeps on
 * `signal` weft_stream_wait(), weft_stream_front()
 *   ... reads packets whose bit is set ...
 *   weft_stream_release()                           may use the block's memory again:  tail + 1
 */
#ifndef WEFT_STREAM_RING_H
#define WEFT_STREAM_RING_H

/* For mmap(2) of anonymous memory, syscall(2) and CLOCK_MONOTONIC, which plain C11 (-std=c11) does
 * not show. */
#if !defined(_DEFAULT_SOURCE) && !defined(_GNU_SOURCE)
#define _DEFAULT_SOURCE 1
#endif

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifndef MAP_ANONYMOUS
#error "include weft/stream_ring.h before other headers, or compile with -D_DEFAULT_SOURCE"
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define WEFT_STREAM_MAGIC 0x676e697274666577ULL /* "weftring" in memory */
#define WEFT_STREAM_VERSION 2u
#define WEFT_STREAM_MOST_PACKETS 16384u /* in a block */
#define WEFT_STREAM_MOST_BLOCKS 992u    /* of a stream */
#define WEFT_STREAM_BLOCK_HEADER 4096u
#define WEFT_STREAM_RECEIVER 0xffffffffu /* `consumer`: the receiver itself, for a moment */

/* What a packet looks like; docs/streams-reference.md has the bytes. */
enum weft_stream_format {
  WEFT_STREAM_RSP = 1,
  WEFT_STREAM_SPEAD = 2,
  WEFT_STREAM_RAW = 3,
  WEFT_STREAM_VDIF = 4,
  WEFT_STREAM_LOFAR2 = 5
};

/* The first bytes of the file. Constant while the receiver runs, but for `ended`. */
struct weft_stream_ring {
  uint64_t magic;
  uint32_t version;
  uint32_t format;            /* enum weft_stream_format */
  uint32_t streams;           /* how many */
  uint32_t blocks;            /* of each stream */
  uint32_t packets_per_block; /* at most WEFT_STREAM_MOST_PACKETS */
  uint32_t packet_bytes;      /* with its header */
  uint32_t header_bytes;      /* of each packet, before its payload */
  uint32_t slot_bytes;        /* from one packet to the next; at least packet_bytes */
  uint32_t bits;              /* of a sample's real part, as --bits */
  uint32_t ended;             /* not 0 when the receiver has ended; what is published stays */
  uint64_t size;              /* of the file */
  uint64_t streams_offset;    /* of the first struct weft_stream_state */
  uint64_t headers_offset; /* of the first struct weft_stream_block: block i of stream s is number s
                            * blocks + i */
  uint64_t data_offset;    /* of the first block's packets */
  uint64_t block_bytes; /* from one block's packets to the next's, in the same order; a multiple of
                           4096 */
  uint64_t session;     /* another one each time that a receiver makes the ring */
  uint32_t signal; /* futex: changes when any stream gets a block, and when the receiver ends */
  uint32_t reserved;
};

/* One for each stream. `head` and `tail` count published and released blocks; the n-th published
 * block is order[n % blocks]. */
struct weft_stream_state {
  uint64_t head;   /* written by the receiver */
  uint32_t signal; /* futex: changes with head, and when the receiver ends */
  uint32_t reserved;
  uint64_t received;        /* packets in published blocks */
  uint64_t missing;         /* packets that never came */
  uint64_t overrun_packets; /* packets that found no free block */
  uint64_t pad0[3];
  uint64_t tail;     /* written by the consumer */
  uint32_t consumer; /* its process id, as it sees it; 0: nobody, and the receiver releases blocks
                        itself. Who changes it, or moves `tail`, does so by compare-and-exchange */
  uint32_t pad1;
  uint64_t pad2[6];
  uint32_t order[WEFT_STREAM_MOST_BLOCKS];
};

/* What stands before each block's packets, also in a file that `weft stream recv --file` writes. */
struct weft_stream_block {
  uint64_t magic;  /* WEFT_STREAM_MAGIC */
  uint64_t number; /* of the block: its first packet is number * packets */
  uint32_t stream;
  uint32_t packets;  /* in a block */
  uint32_t received; /* how many of them are here */
  uint32_t pad;      /* 0 */
  uint32_t packet_bytes;
  uint32_t slot_bytes;
  uint64_t block_bytes;                        /* of the packets behind this header */
  int64_t closed_ns;                           /* CLOCK_REALTIME, when it was published */
  uint8_t valid[WEFT_STREAM_MOST_PACKETS / 8]; /* bit i % 8 of byte i / 8: packet i is here */
  uint8_t reserved[WEFT_STREAM_BLOCK_HEADER - 56 - WEFT_STREAM_MOST_PACKETS / 8];
};

/* ---- a consumer */

struct weft_stream {
  struct weft_stream_ring* ring;
  struct weft_stream_state* state;
  uint32_t stream;
};

/* Whether all parts that the header tells of lie inside the file, one behind the other, each from
 * the begin of a page on. */
static inline int weft_stream_fits(const struct weft_stream_ring* r) {
  const uint64_t slots = (uint64_t)r->streams * r->blocks;
  if (r->streams == 0 || r->streams > 65536 || r->blocks == 0 ||
      r->blocks > WEFT_STREAM_MOST_BLOCKS || r->packets_per_block == 0 ||
      r->packets_per_block > WEFT_STREAM_MOST_PACKETS || r->packet_bytes == 0 ||
      r->packet_bytes > r->slot_bytes || r->header_bytes > r->packet_bytes ||
      r->block_bytes > r->size) {
    return 0;
  }
  return r->streams_offset >= sizeof *r && r->streams_offset % 4096 == 0 &&
         r->headers_offset % 4096 == 0 && r->data_offset % 4096 == 0 &&
         r->block_bytes % 4096 == 0 && r->streams_offset <= r->size &&
         r->headers_offset <= r->size && r->data_offset <= r->size &&
         r->headers_offset >=
             r->streams_offset + (uint64_t)r->streams * sizeof(struct weft_stream_state) &&
         r->data_offset >= r->headers_offset + slots * sizeof(struct weft_stream_block) &&
         r->block_bytes >= (uint64_t)r->packets_per_block * r->slot_bytes &&
         r->block_bytes <= (r->size - r->data_offset) / slots;
}

/* A part of a ring that fits: it is aligned for whatever is kept there. */
static inline void* weft_stream_part(const struct weft_stream_ring* ring, uint64_t offset) {
  return (char*)(uintptr_t)ring + offset;
}

/* Who lives holds a lock of the file (F_OFD_SETLK, for writing): the receiver that of byte 0, a
 * consumer that of the first byte of its stream's struct weft_stream_state. The kernel gives it
 * back when the process ends, however it ends; but children of fork() that did not exec have it,
 * too, and keep it until they end or call weft_stream_after_fork(). So containers that share
 * /dev/shm and not their process numbers know about each other. 0: it is had, or (`test`) could be
 * had. */
#define WEFT_STREAM_OFD_GETLK 36 /* as in <fcntl.h>, which shows them with _GNU_SOURCE alone */
#define WEFT_STREAM_OFD_SETLK 37
static inline struct flock weft_stream_byte(short type, uint64_t at) {
  struct flock l;
  l.l_type = type;
  l.l_whence = SEEK_SET;
  l.l_start = (off_t)at;
  l.l_len = 1;
  l.l_pid = 0;
  return l;
}
static inline int weft_stream_lock(int fd, uint64_t at, int test) {
  struct flock l = weft_stream_byte(F_WRLCK, at);
  if (fcntl(fd, test ? WEFT_STREAM_OFD_GETLK : WEFT_STREAM_OFD_SETLK, &l) != 0) return -1;
  return test && l.l_type != F_UNLCK ? -1 : 0;
}
static inline void weft_stream_unlock(int fd, uint64_t at) {
  struct flock l = weft_stream_byte(F_UNLCK, at);
  (void)fcntl(fd, WEFT_STREAM_OFD_SETLK, &l);
}
static inline uint64_t weft_stream_lock_of(const struct weft_stream_ring* ring, uint32_t stream) {
  return ring->streams_offset + (uint64_t)stream * sizeof(struct weft_stream_state);
}

/* What this process alone knows of a ring that it opened; it lies before the ring in memory. */
struct weft_stream_own {
  int fd;                  /* -1 after weft_stream_after_fork() */
  size_t size;             /* of the mapping, this included */
  uint8_t attached[65536]; /* a stream each */
};
#define WEFT_STREAM_OWN_BYTES 131072u /* a multiple of all page sizes */
static inline struct weft_stream_own* weft_stream_own_of(const struct weft_stream_ring* ring) {
  void* own = (char*)(uintptr_t)ring - WEFT_STREAM_OWN_BYTES;
  return (struct weft_stream_own*)own;
}

/* Lets go of a ring and of its streams. */
static inline void weft_stream_close(struct weft_stream_ring* ring) {
  struct weft_stream_own* own = weft_stream_own_of(ring);
  if (own->fd >= 0) close(own->fd);
  munmap(own, own->size);
}

/* For a child of fork() that lives on without exec, while its parent consumes: closes the child's
 * copy of the descriptor, and takes the ring's memory out of the child, which holds the lock as
 * well. Without that the receiver takes a parent that died for alive as long as the child lives.
 * For the child the ring is empty and over from then on: weft_stream_attach() fails with EBADF,
 * weft_stream_front() shows nothing, weft_stream_wait() finds no receiver, weft_stream_release()
 * and weft_stream_detach() leave the parent's blocks and streams alone. weft_stream_close() does
 * the same and frees the addresses. -1 and errno when there is no memory for it. */
static inline int weft_stream_after_fork(struct weft_stream_ring* ring) {
  struct weft_stream_own* own = weft_stream_own_of(ring);
  if (mmap(ring, own->size - WEFT_STREAM_OWN_BYTES, PROT_READ,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == MAP_FAILED) {
    return -1;
  }
  if (own->fd >= 0) close(own->fd);
  own->fd = -1;
  return 0;
}

/* Maps the ring NAME (without "/dev/shm/"). NULL and errno when there is none, or one of another
 * version. A child of fork() that wants to consume opens it anew, and calls
 * weft_stream_after_fork() for the one that it has from its parent. */
static inline struct weft_stream_ring* weft_stream_open(const char* name) {
  struct weft_stream_ring* ring;
  struct stat st;
  char path[256] = "/dev/shm/";
  char* place;
  size_t at = 9;
  size_t size;
  int fd;
  while (*name != '\0' && at < sizeof path - 1) path[at++] = *name++;
  path[at] = '\0';
  fd = open(path, O_RDWR | O_CLOEXEC);
  if (fd < 0) return NULL;
  if (fstat(fd, &st) != 0 || (size_t)st.st_size < sizeof *ring) {
    close(fd);
    errno = EAGAIN; /* it is being made */
    return NULL;
  }
  /* Anybody may leave a file in /dev/shm. Root reads those of others, too. */
  if (st.st_uid != geteuid() && geteuid() != 0) {
    close(fd);
    errno = EPERM;
    return NULL;
  }
  size = WEFT_STREAM_OWN_BYTES + (size_t)st.st_size;
  /* Addresses alone, which cost no memory, also where all of it is locked or accounted for. */
  place = (char*)mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if ((void*)place == MAP_FAILED) {
    const int why = errno;
    close(fd);
    errno = why;
    return NULL;
  }
  if (mprotect(place, WEFT_STREAM_OWN_BYTES, PROT_READ | PROT_WRITE) != 0) {
    const int why = errno;
    munmap(place, size);
    close(fd);
    errno = why;
    return NULL;
  }
  ring = (struct weft_stream_ring*)mmap(place + WEFT_STREAM_OWN_BYTES, (size_t)st.st_size,
                                        PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0);
  if ((void*)ring == MAP_FAILED ||
      __atomic_load_n(&ring->magic, __ATOMIC_ACQUIRE) != WEFT_STREAM_MAGIC ||
      ring->version != WEFT_STREAM_VERSION || ring->size != (uint64_t)st.st_size ||
      !weft_stream_fits(ring)) {
    const int why = (void*)ring == MAP_FAILED ? errno : EPROTO;
    munmap(place, size);
    close(fd);
    errno = why;
    return NULL;
  }
  weft_stream_own_of(ring)->fd = fd;
  weft_stream_own_of(ring)->size = size;
  return ring;
}

/* Whether the receiver runs. One that was killed could not say `ended`. 0 after
 * weft_stream_after_fork(). */
static inline int weft_stream_alive(const struct weft_stream_ring* ring) {
  const int fd = weft_stream_own_of(ring)->fd;
  return fd >= 0 && __atomic_load_n(&ring->ended, __ATOMIC_ACQUIRE) == 0 &&
         weft_stream_lock(fd, 0, 1) != 0;
}

/* Makes this process the consumer of a stream, from the next block on. -1 and errno: EINVAL; EBUSY
 * while another consumer is there (one that has died is there until the receiver notices, so this
 * waits for some 300 ms); EPIPE when the receiver has ended or was killed, and nobody is left to
 * notice; EBADF after weft_stream_after_fork(). */
static inline int weft_stream_attach(struct weft_stream_ring* ring, uint32_t stream,
                                     struct weft_stream* out) {
  struct weft_stream_own* own = weft_stream_own_of(ring);
  struct weft_stream_state* all =
      (struct weft_stream_state*)weft_stream_part(ring, ring->streams_offset);
  int tries = 300;
  if (own->fd < 0) {
    errno = EBADF;
    return -1;
  }
  if (stream >= ring->streams) {
    errno = EINVAL;
    return -1;
  }
  if (__atomic_exchange_n(&own->attached[stream], 1, __ATOMIC_SEQ_CST) != 0) {
    errno = EBUSY;
    return -1;
  }
  for (;;) {
    const struct timespec t = {0, 1000000};
    const uint64_t lock = weft_stream_lock_of(ring, stream);
    const int alive = weft_stream_alive(ring);
    uint32_t nobody = __atomic_load_n(&all[stream].consumer, __ATOMIC_ACQUIRE);
    /* The lock of one who has died stays free until the receiver has taken the name away. */
    if (nobody == 0 && weft_stream_lock(own->fd, lock, 0) == 0) {
      if (__atomic_compare_exchange_n(&all[stream].consumer, &nobody, (uint32_t)getpid(), 0,
                                      __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
        break;
      }
      weft_stream_unlock(own->fd, lock);
    }
    if (--tries == 0 || !alive) {
      __atomic_store_n(&own->attached[stream], 0, __ATOMIC_SEQ_CST);
      errno = alive ? EBUSY : EPIPE;
      return -1;
    }
    nanosleep(&t, NULL);
  }
  out->ring = ring;
  out->state = &all[stream];
  out->stream = stream;
  return 0;
}

/* Lets go of a stream. Nothing happens in a process that is not its consumer: the lock of a child
 * of fork() is that of its parent. */
static inline void weft_stream_detach(struct weft_stream* s) {
  struct weft_stream_own* own = weft_stream_own_of(s->ring);
  uint32_t self = (uint32_t)getpid();
  if (own->fd < 0 || !__atomic_compare_exchange_n(&s->state->consumer, &self, 0, 0,
                                                  __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
    return;
  }
  weft_stream_unlock(own->fd, weft_stream_lock_of(s->ring, s->stream));
  __atomic_store_n(&own->attached[s->stream], 0, __ATOMIC_SEQ_CST);
}

/* The oldest block that is published and not released; NULL when there is none now. */
static inline const struct weft_stream_block* weft_stream_front(const struct weft_stream* s) {
  const struct weft_stream_block* blocks;
  const uint64_t tail = __atomic_load_n(&s->state->tail, __ATOMIC_ACQUIRE);
  if (tail >= __atomic_load_n(&s->state->head, __ATOMIC_ACQUIRE)) return NULL;
  blocks = (const struct weft_stream_block*)weft_stream_part(s->ring, s->ring->headers_offset);
  return &blocks[s->stream * s->ring->blocks + s->state->order[tail % s->ring->blocks]];
}

/* Packet `i` of a block of this stream, with its header; NULL when it is missing. */
static inline const uint8_t* weft_stream_packet(const struct weft_stream* s,
                                                const struct weft_stream_block* b, uint32_t i) {
  const struct weft_stream_block* blocks =
      (const struct weft_stream_block*)weft_stream_part(s->ring, s->ring->headers_offset);
  if ((b->valid[i / 8] >> (i % 8) & 1) == 0) return NULL;
  return (const uint8_t*)s->ring + s->ring->data_offset +
         (uint64_t)(b - blocks) * s->ring->block_bytes + (uint64_t)i * s->ring->slot_bytes;
}

/* Gives the block that weft_stream_front() showed back to the receiver. When the receiver has
 * released it meanwhile, nothing happens. */
static inline void weft_stream_release(struct weft_stream* s) {
  uint64_t tail = __atomic_load_n(&s->state->tail, __ATOMIC_ACQUIRE);
  if (weft_stream_own_of(s->ring)->fd < 0) return;
  if (tail >= __atomic_load_n(&s->state->head, __ATOMIC_ACQUIRE)) return;
  (void)__atomic_compare_exchange_n(&s->state->tail, &tail, tail + 1, 0, __ATOMIC_SEQ_CST,
                                    __ATOMIC_SEQ_CST);
}

static inline int64_t weft_stream_clock_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Sleeps until there is a block: 1. 0 when the time is over; -1 when the receiver has ended, or was
 * killed, and nothing is left. Signals do not end it. */
static inline int weft_stream_wait(const struct weft_stream* s, int milliseconds) {
  const int64_t until = weft_stream_clock_ms() + milliseconds;
  int64_t left = milliseconds;
  for (;; left = until - weft_stream_clock_ms()) {
    struct timespec t;
    const int turn = left < 1000 ? (int)left : 1000;
    const uint32_t seen = __atomic_load_n(&s->state->signal, __ATOMIC_ACQUIRE);
    /* In this order: the last blocks are published before the end. */
    const int alive = weft_stream_alive(s->ring);
    if (weft_stream_front(s) != NULL) return 1;
    if (!alive) return -1;
    if (left <= 0) return 0;
    t.tv_sec = turn / 1000;
    t.tv_nsec = (long)(turn % 1000) * 1000000;
    (void)syscall(SYS_futex, &s->state->signal, FUTEX_WAIT, seen, &t, NULL, 0);
  }
}

#ifdef __cplusplus
}
#endif

#endif
