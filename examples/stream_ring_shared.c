/* The functions of weft/stream_ring.h as a shared library, for languages that are not C: what two
 * processes agree about, locks and words that both change, stays in one place. stream_ring.py loads
 * it.
 *
 *   cc -O2 -shared -fPIC -I include -o libstream_ring.so examples/stream_ring_shared.c
 */
#include <weft/stream_ring.h>

#include <stdlib.h>

struct weft_stream_ring* ring_open(const char* name);
void ring_close(struct weft_stream_ring* ring);
int ring_alive(const struct weft_stream_ring* ring);
struct weft_stream* stream_attach(struct weft_stream_ring* ring, uint32_t stream);
void stream_detach(struct weft_stream* stream);
int stream_wait(const struct weft_stream* stream, int milliseconds);
const struct weft_stream_block* stream_front(const struct weft_stream* stream);
const void* stream_data(const struct weft_stream* stream, const struct weft_stream_block* block);
void stream_release(struct weft_stream* stream);

struct weft_stream_ring* ring_open(const char* name) {
  return weft_stream_open(name);
}
void ring_close(struct weft_stream_ring* ring) {
  weft_stream_close(ring);
}
int ring_alive(const struct weft_stream_ring* ring) {
  return weft_stream_alive(ring);
}

/* NULL and errno. */
struct weft_stream* stream_attach(struct weft_stream_ring* ring, uint32_t stream) {
  struct weft_stream* s = (struct weft_stream*)malloc(sizeof *s);
  if (s != NULL && weft_stream_attach(ring, stream, s) != 0) {
    const int why = errno;
    free(s);
    errno = why;
    return NULL;
  }
  return s;
}
void stream_detach(struct weft_stream* stream) {
  weft_stream_detach(stream);
  free(stream);
}
int stream_wait(const struct weft_stream* stream, int milliseconds) {
  return weft_stream_wait(stream, milliseconds);
}
const struct weft_stream_block* stream_front(const struct weft_stream* stream) {
  return weft_stream_front(stream);
}
/* Where the block's first slot is, whether or not a packet is there. */
const void* stream_data(const struct weft_stream* stream, const struct weft_stream_block* block) {
  const struct weft_stream_ring* ring = stream->ring;
  const struct weft_stream_block* blocks =
      (const struct weft_stream_block*)((const char*)ring + ring->headers_offset);
  return (const char*)ring + ring->data_offset + (uint64_t)(block - blocks) * ring->block_bytes;
}
void stream_release(struct weft_stream* stream) {
  weft_stream_release(stream);
}
