#include "wire/term_errors.h"

#include <iterator>

namespace weft::wire {
namespace {

constexpr TermErrorName kNames[] = {
    {term::kLocalCatastrophic, "local_catastrophic", "local catastrophic error (0/0/00)"},
    {{Layer::rdmap, 0, 0xff}, "local_catastrophic_ff", "local catastrophic error of siw (0/0/ff)"},
    {term::kProtectionInvalidStag, "protection_stag", "remote protection: STag invalid (0/1/00)"},
    {term::kProtectionBounds, "protection_bounds", "remote protection: out of bounds (0/1/01)"},
    {term::kProtectionAccess, "protection_access", "remote protection: access rights (0/1/02)"},
    {term::kProtectionNotOnStream, "protection_not_on_stream",
     "remote protection: STag not on this stream (0/1/03)"},
    {term::kProtectionToWrap, "protection_wrap", "remote protection: TO wraps (0/1/04)"},
    {term::kProtectionCannotInvalidate, "protection_invalidate",
     "remote protection: STag cannot be invalidated (0/1/09)"},
    {term::kProtectionUnspecified, "protection_unspecified",
     "remote protection: unspecified (0/1/ff)"},
    {term::kOperationVersion, "operation_version", "remote operation: RDMAP version (0/2/05)"},
    {term::kOperationUnexpectedOpcode, "operation_opcode",
     "remote operation: unexpected opcode (0/2/06)"},
    {term::kOperationCatastrophicStream, "operation_stream",
     "remote operation: catastrophic, of this stream (0/2/07)"},
    {{Layer::rdmap, 2, 0x08},
     "operation_global",
     "remote operation: catastrophic, global (0/2/08)"},
    {term::kOperationCannotInvalidate, "operation_invalidate",
     "remote operation: STag cannot be invalidated (0/2/09)"},
    {term::kOperationUnspecified, "operation_unspecified",
     "remote operation: unspecified (0/2/ff)"},
    {term::kDdpCatastrophic, "ddp_catastrophic", "DDP: local catastrophic error (1/0/00)"},
    {term::kTaggedInvalidStag, "tagged_stag", "tagged buffer: STag invalid (1/1/00)"},
    {term::kTaggedBounds, "tagged_bounds", "tagged buffer: out of bounds (1/1/01)"},
    {term::kTaggedNotOnStream, "tagged_not_on_stream",
     "tagged buffer: STag not on this stream (1/1/02)"},
    {term::kTaggedToWrap, "tagged_wrap", "tagged buffer: TO wraps (1/1/03)"},
    {term::kTaggedVersion, "tagged_version", "tagged buffer: DDP version (1/1/04)"},
    {term::kUntaggedInvalidQn, "untagged_queue", "untagged buffer: invalid QN (1/2/01)"},
    {term::kUntaggedNoBuffer, "untagged_no_buffer", "untagged buffer: no buffer (1/2/02)"},
    {term::kUntaggedMsnRange, "untagged_msn", "untagged buffer: MSN out of range (1/2/03)"},
    {term::kUntaggedInvalidMo, "untagged_offset", "untagged buffer: invalid MO (1/2/04)"},
    {term::kUntaggedTooLong, "untagged_too_long", "untagged buffer: message too long (1/2/05)"},
    {term::kUntaggedVersion, "untagged_version", "untagged buffer: DDP version (1/2/06)"},
    {term::kMpaConnectionLost, "mpa_connection_lost", "MPA: connection lost (2/0/01)"},
    {term::kMpaCrc, "mpa_crc", "MPA: CRC mismatch (2/0/02)"},
    {term::kMpaLength, "mpa_length", "MPA: marker or length mismatch (2/0/03)"},
    {term::kMpaBadFrame, "mpa_bad_frame", "MPA: bad start-up frame (2/0/04)"},
    {{Layer::llp, 0, 0x05}, "mpa_catastrophic", "MPA: local catastrophic error (2/0/05)"},
    {term::kMpaInsufficientIrd, "mpa_ird", "MPA: insufficient IRD (2/0/06)"},
    {term::kMpaNoMatchingRtr, "mpa_rtr", "MPA: no matching RTR (2/0/07)"},
    {{}, "other", "an error that no RFC names"},
};
static_assert(std::size(kNames) == kTermErrorCount + 1);

}  // namespace

size_t index_of(TermError error) {
  for (size_t i = 0; i < kTermErrorCount; ++i) {
    if (kNames[i].error == error) return i;
  }
  return kOtherTermError;
}

const TermErrorName& term_error(size_t index) {
  return kNames[index <= kOtherTermError ? index : kOtherTermError];
}

}  // namespace weft::wire
