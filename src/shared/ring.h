// One direction of a connection between two processes of one host: a ring of bytes in memory that
// both map (spec/same-host 3). The writer puts records into it; each holds bytes of the stream, or
// says where in the writer's process they are, and the reader pulls them from there.
//
// Above 400 lines with its source: both ends of one format, to be read side by side.
//
// Either side takes the other for hostile: what is read from the shared memory is copied before it
// is checked, and positions are only followed where they are possible.
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <optional>
#include <span>

#include "base/bytes.h"
#include "base/io_vec.h"
#include "port/byte_stream.h"
#include "shared/peer_memory.h"
#include "shared/pull_cost.h"

namespace weft::shared {

// A sender that is ahead of a reader which has its turns now and then is not held up by a ring of
// so many bytes; by a quarter of them it is (docs/design/34).
inline constexpr size_t kRingBytes = 512 * 1024;

// What the two sides tell each other, beside the bytes. A line of the cache for each that one side
// changes often; those of the third change rarely (spec/same-host 3.1).
struct RingControl {
  // Bytes of records since the ring began, modulo 2^64; the writer's.
  alignas(64) std::atomic<uint64_t> written;
  // Of them, those that the reader needs no more; the reader's.
  alignas(64) std::atomic<uint64_t> read;
  // 1: the reader sleeps, and wants a byte on the TCP connection.
  alignas(64) std::atomic<uint32_t> reader_sleeps;
  // 1: the reader can pull; without it the writer refers to nothing.
  std::atomic<uint32_t> reader_pulls;
  // 1: what the writer refers to cannot be reached; it shall refer to copies instead.
  std::atomic<uint32_t> copies_wanted;
  uint32_t unused;
  // The writer wants a byte on the TCP connection when `read` gets there; 0: it does not.
  std::atomic<uint64_t> wake_writer_at;
};
static_assert(sizeof(RingControl) == 192 && std::atomic<uint64_t>::is_always_lock_free);

// A place in the process's own memory where a ring is mapped.
struct RingPlace {
  RingControl* control;
  std::byte* bytes;  // kRingBytes, at a multiple of 8
  // The word of a record at this position.
  std::atomic<uint64_t>& word(uint64_t position) const;
};

// Both are used by one thread at a time. Neither calls the kernel, but for the pull.
class RingWriter {
 public:
  // Most that is referred to and not yet pulled, in bytes.
  static constexpr size_t kReferredMost = 4 * 1024 * 1024;

  // `refer_from`: bytes of a piece from which on it is referred to, or kNeverPull.
  RingWriter(RingPlace place, size_t refer_from) : place_(place), refer_from_(refer_from) {}

  // Takes as much from the front of `pieces` as finds room. Pieces within `own` are copied. Others
  // may be referred to, and must stay until the reader has pulled them or detach() has returned.
  // EFAULT where the memory of the first piece is gone; EPROTO where the reader is out of its mind.
  port::ByteStream::Transfer write(std::span<const IoVec> pieces, Bytes own);
  // Is there room for more, once write() has not taken all?
  bool has_room();
  // From now on the reader is to wake this side when there is. False: there is already.
  bool await_room();
  // What is written is to be seen. True: wake the reader.
  bool publish();
  // The same for a part of it; publish() follows.
  void publish_part();

  // Copies what is referred to, and refers to the copies: the memory may change and go. Where it is
  // gone already, says which (nullptr: none was) and takes the reference back: the reader ends the
  // connection there.
  const void* detach();
  // Writes a reference to nowhere, if there is room: the reader finds out why the stream ends.
  void end_for_loss();
  // Takes back what is referred to and not pulled: the reader ends the connection there.
  void revoke();
  // Does the reader ask for that?
  bool copies_wanted() const {
    return place_.control->copies_wanted.load(std::memory_order_relaxed) != 0 && !broken_ &&
           refers_now();
  }
  // Is anything referred to that was not pulled?
  bool refers_now() const;

 private:
  struct Reference {
    uint64_t word;  // position in the ring of its address
    const void* memory;
    size_t length;
    std::unique_ptr<std::byte[]> copy;
  };
  size_t room() const { return kRingBytes - static_cast<size_t>(written_ - read_); }
  bool look();
  void drop_pulled();
  bool may_refer(const IoVec& piece, Bytes own) const;
  bool refer(const void* memory, size_t length);
  size_t copy(std::span<const IoVec> pieces, bool& faulted);
  bool copy_in(uint64_t at, const std::byte* from, size_t n) const;
  uint64_t room_again_at(size_t room) const;

  const RingPlace place_;
  const size_t refer_from_;
  uint64_t written_ = 0;
  uint64_t published_ = 0;
  uint64_t read_ = 0;  // as the reader has said
  bool broken_ = false;
  bool tells_ = false;  // the reader, of another address or of a part
  std::deque<Reference> references_;
  size_t referred_ = 0;  // bytes of them
};

class RingReader {
 public:
  explicit RingReader(RingPlace place) : place_(place) {}

  // Fills `pieces` from the front. A record by reference is only begun by a call, so that its
  // bytes can be asked for in the places where they belong. EFAULT: the first place cannot be
  // written; EPROTO: what is in the ring is no record; ECONNRESET: the peer's process is gone;
  // SharedBytes::kSourceLost: its memory is.
  port::ByteStream::Transfer read(std::span<const IoVec> pieces);
  // Would read() find anything?
  bool has_input(std::memory_order order = std::memory_order_relaxed) const;
  // While this has not changed, it would not.
  port::PeerWord input_word() const {
    if (broken_) return {};
    return {&place_.control->written, read_};  // a record that is not read whole is before it
  }
  // What was read is done with. True: wake the writer.
  bool publish();
  // The writer is to wake this side. False: there is something already.
  bool sleep();
  // It is not, for this side asks the memory.
  void stay_awake() { place_.control->reader_sleeps.store(0, std::memory_order_relaxed); }
  // The writer may refer to its memory, which is the peer's. Without this a reference is EPROTO.
  void allow_references(const PeerMemory& peer) {
    peer_ = peer;
    place_.control->reader_pulls.store(1, std::memory_order_release);
  }

 private:
  class Places;
  enum class Step : uint8_t { moved, nothing, faulted, broken, lost, taken_back };
  Step next_record(bool fresh);
  Step copy(Places& places);
  Step pull(Places& places);
  Step cannot_pull(int error, uint64_t address);

  const RingPlace place_;
  std::optional<PeerMemory> peer_;  // where references are allowed
  uint64_t read_ = 0;               // of whole records
  uint64_t published_ = 0;          // as the writer knows
  // The record at read_, once it is begun.
  bool by_reference_ = false;
  size_t length_ = 0;
  size_t done_ = 0;
  uint64_t stalled_on_ = 0;  // address that could not be reached; another one is asked for
  bool asks_writer_ = false;
  bool broken_ = false;
};

}  // namespace weft::shared
