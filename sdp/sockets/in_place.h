// Read and Write ZCopy for calls that block: the memory of one program goes to the other's without
// a copy. All calls hold the lock of the session, and wait for no program
// for long: memory of a caller is in use, so that the call cannot be left, by a signal or a time
// limit either.
#pragma once

#include <mutex>

#include "sdp/rdma/session.h"
#include "sdp/sockets/look.h"

namespace weft::sdp {

using SessionLock = std::unique_lock<Session::Lock>;

// Has the peer read `from`. How many bytes it has read: fewer if it did not come to read, will not,
// or the connection broke.
uint32_t send_in_place(SessionLock& lock, Session& session, LookTime& look_time, Bytes from);

// Reads what the peer offers to `to`. 0 if that cannot be, or the connection broke.
uint32_t receive_in_place(SessionLock& lock, Session& session, LookTime& look_time,
                          MutableBytes to);

// Writes the beginning of `from` to the buffer that the peer's program waits with. How many bytes;
// 0: there is none, or the memory cannot be lent.
uint32_t send_written(SessionLock& lock, Session& session, LookTime& look_time, Bytes from);

// Offers `to` to the peer for a moment. How many bytes it has written there; 0: something else
// came, or nothing.
uint32_t receive_written(SessionLock& lock, Session& session, LookTime& look_time, MutableBytes to);

// The same to the session's own memory, to be received from there.
void receive_staged(SessionLock& lock, Session& session, LookTime& look_time);

}  // namespace weft::sdp
