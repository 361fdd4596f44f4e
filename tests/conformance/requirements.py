"""What the RFCs ask for, as far as docs/spec names it, and what shows that weft does it.

need(SECTION, LEVEL, SENTENCE, CASES): CASES are names of cases in live/, with * for what differs. More of it: `tests`,
GoogleTest's Suite.Name, or trace.CASE of tests/trace; `exception`, why weft does something else. What has neither case nor
test must be quoted in a comment in src/.
Sentences are in our words. compliance.py makes docs/compliance.md of them.
"""

from dataclasses import dataclass


@dataclass
class Requirement:
    section: str  # "5044 4.1"
    level: str
    sentence: str
    cases: list
    tests: list
    exception: str


ALL = []


def need(section, level, sentence, cases="", tests="", exception=""):
    ALL.append(Requirement(section, level, sentence, cases.split(), tests.split(), exception))


MUST, SHOULD = "MUST", "SHOULD"

# --- RFC 5044, MPA: FPDUs

need("5044 4.1", MUST, "An FPDU is ULPDU_Length, ULPDU, pad to a multiple of four and the CRC field",
     "fpdu.good* fpdu.sent fpdu.sent.initiator", "FpduWriter.TheExamplesOfTheSpecification")
need("5044 4.1", MUST, "ULPDU_Length counts the ULPDU alone: no length field, pad, CRC or markers", "fpdu.pad_* fpdu.sent",
     "Fpdu.PadMakesAMultipleOfFourWithTheLeastBytes")
need("5044 4.1", MUST, "Pad is sent as zero", "fpdu.sent_pad", "FpduWriter.EveryPadIsZero")
need("5044 4.1", MUST, "Pad is not looked at by the receiver", "fpdu.pad_*", "Frames.EveryPadValueOfEveryLength")
need("5044 4.1", MUST, "Any ULPDU up to 65535 bytes can be received", "fpdu.large", "Frames.TheLargestFpdu")
need("5044 4.2", MUST, "A marker has two reserved bytes that are zero, and FPDUPTR", "markers.responder markers.initiator",
     "FpduWriter.MarkersStandEvery512BytesAndPointToTheirFpdu")
need("5044 4.3", MUST, "Markers are sent to a peer that asks for them, at each 512th byte of the stream of FPDUs, counted "
     "from its beginning",
     "markers.responder markers.initiator request.markers", "FpduWriter.TheFirstMarkerPrecedesTheFirstFpdu")
need("5044 4.3", MUST, "FPDUPTR points back to the ULPDU_Length of the FPDU, and is zero right before it",
     "markers.responder",
     "FpduWriter.MarkersStandEvery512BytesAndPointToTheirFpdu")
need("5044 7.1.1", "MAY", "A receiver may do without markers: M=0 in its frame", "initiator.m request.good")
need("5044 4.4", MUST, "The CRC is CRC32C over the FPDU from its length to its pad, markers in it included",
     "crc.covers_* markers.responder",
     "FpduWriter.TheExamplesOfTheSpecification Receiver.AnyDamagedByteIsFound")
need("5044 4.4", MUST, "By default a connection uses the CRC; only the administrator turns it off", "initiator.crc reply.crc")
need("5044 6", MUST, "The CRC is verified before the ULPDU goes to DDP, that is before it is placed", "crc.covers_* crc.large_write")
need("5044 4.4", MUST, "The CRC is stored as iSCSI does it, its least significant byte first", "fpdu.sent", "ExampleE3.Send")
need("5044 4.4", MUST, "Where the CRC is on, an FPDU with a wrong one is not delivered, and the stream ends",
     "crc.wrong* crc.large_wrong crc.first_wrong",
     "Answers.CrcMismatch LateAnswers.CrcMismatchOfAPlacedFpdu")
need("5044 8", MUST, "Nothing behind the damaged FPDU is delivered; what came before it is", "crc.second_wrong")
need("5044 4.4", MUST, "Where the CRC is off, the field is there and not checked", "crc.off crc.off_initiator",
     "Receiver.WithoutCrcTheFieldIsNotLookedAt FpduWriter.WithoutCrcTheFieldIsZero")
need("5044 4.5", MUST, "ULPDUs are no larger than the MULPDU, EMSS - (6 + EMSS mod 4), and with markers that much less", "",
     "MaxPayload.AsSiwAtAnMssOf1448 MaxPayload.TheFpduFitsAnyEmss")
need("5044 5.1", SHOULD, "FPDUs fit a TCP segment, so that it can be placed without the one before it",
     "fpdu.fits_segment",
     "MaxPayload.TheFpduFitsAnyEmss")
need("5044 5.1", SHOULD, "A TCP segment begins with an FPDU", "",
     "trace.one_fpdu_in_one_segment FpduWriter.KeepsEachFpduWholeInASegment FpduSegment.IsTcpsWhereFpdusFitIt")
need("5044 5.1", SHOULD, "The FPDU size follows the EMSS when that changes", "",
     exception="weft asks TCP for it once for each connection (docs/status.md); a path that shrinks cuts FPDUs into "
     "segments, which receivers take")
need("5044 5.1", SHOULD, "An FPDU is handed to TCP as a whole", "",
     "trace.one_fpdu_in_one_segment TxBatch.RoomEndsWithStagingPiecesOrBytes")
need("5044 6", MUST, "FPDUs are found in the stream however TCP cut it", "fpdu.in_three* fpdu.bytewise* fpdu.crc_* fpdu.several*",
     "Receiver.ByteByByte Receiver.AnyCutOfAnyFpdus")

# --- RFC 5044: start-up

need("5044 7.1.1", MUST, "The Request's key is 'MPA ID Req Frame', the Reply's 'MPA ID Rep Frame'",
     "initiator.key reply.key")
need("5044 7.1.1", MUST, "A frame with another key ends the connection",
     "request.key_* request.reply_key initiator.reply_key initiator.reply_is_request",
     "MpaStart.EveryByteOfTheKeyCounts")
need("5044 7.1.1", MUST, "A revision that the receiver does not know ends the connection",
     "request.rev_0 request.rev_3 request.rev_255 initiator.reply_rev_3",
     "MpaStart.RevisionIs1Or2")
need("5044 7.1.1", MUST, "M=1 asks for markers; the other side sends them",
     "request.markers markers.responder markers.initiator markers.by_reply")
need("5044 7.1.1", MUST, "C=1 in one of the two frames turns the CRC on, for both directions",
     "crc.by_request crc.by_reply crc.by_own_request reply.no_crc",
     "Initiator.CrcIsOnWhenOneOfTheTwoWantsIt")
need("5044 7.1.1", MUST, "R is 0 in a Request, and ignored there", "initiator.r request.r")
need("5044 7.1.1", MUST, "Reserved bits are sent as 0", "reply.reserved initiator.reserved initiator.reserved_plain")
need("5044 7.1.1", MUST, "Reserved bits are ignored", "request.reserved initiator.reply_reserved")
need("5044 7.1.1", MUST, "PD_Length is at most 512; more ends the connection",
     "request.length_513 request.length_65535 initiator.reply_513",
     "MpaStart.PrivateDataLengthTo512")
need("5044 7.1.1", MUST, "Private data of up to 512 bytes is taken",
     "request.length_512 request.length_25* request.data_* initiator.reply_data_* private_data.none",
     "FrameReader.PrivateDataUpTo512Bytes")
need("5044 7.1.2", MUST, "A Request that is right is answered with a Reply", "request.good")
need("5044 7.1.2", MUST, "The Initiator sends nothing behind the Request before it has the Reply",
     "initiator.waits request.glued request.impatient",
     "Opening.AnInitiatorWithNothingToSayOpensItAllTheSame")
need("5044 7.1.2", MUST, "The Responder sends the Reply when the Request is there as a whole", "request.half")
need("5044 7.1.2", MUST, "The Responder sends no FPDU before it has one of the Initiator",
     "responder.silent responder.silent_default",
     "Stream.AResponderIsSilentUntilTheFirstFpdu Stream.AnFpduThatIsRefusedOpensNothing")
need("5044 7.1.2", MUST, "Start-up frames may be cut anywhere by TCP",
     "request.bytewise request.in_three initiator.reply_bytewise initiator.reply_in_three initiator.reply_and_half",
     "FrameReader.AnySplitAndNothingBeyondTheFrame")
need("5044 7.1.2", MUST, "Behind the start-up frames there are FPDUs only: a Request is none", "request.twice")
need("5044 7.1.2", MUST, "Bytes behind the Reply are FPDUs, also when they come with it",
     "initiator.reply_and_* initiator.responder_first",
     "HostileStart.a_reply_with_an_fpdu_behind_it")
need("5044 7.1.2", SHOULD, "A Responder whose program rejects says so with R=1 and private data, and closes",
     "reject reject.rev_1 reject.drop initiator.rejected")
need("5044 7.1.2", SHOULD, "A start-up frame that does not come in time ends the connection",
     "request.never request.never_whole request.drips initiator.no_reply initiator.reply_drips")
need("5042 6.4.1", MUST, "No caller holds what others need: those that say nothing go after their time", "request.crowd",
     "HostileStart.callers_that_say_nothing")
need("5044 7.1.2", MUST, "A connection that ends before its start-up does comes to nothing", "request.fin initiator.cut_off")
need("5044 7.1.1", SHOULD, "Private data goes to the program as it is",
     "private_data.up private_data.down private_data.accept_* private_data.reject_* initiator.private_data initiator.reply_data")
need("5044 7.2", SHOULD, "A FIN between two FPDUs is the end of the stream; the program is told", "close.fin* close.reads_first",
     "Stream.AFinBetweenFpdusIsAnEnd Stream.ReadRequestsBeforeAFinMayStayUnanswered")
need("5041 5.4", MUST, "What came whole before the FIN is delivered", "close.delivers_first")
need("5040 6.2.1", SHOULD, "A Terminate is not lost to a reset: the rest of what the peer sends is taken in and thrown away "
     "first", "terminate.not_reset",
     "Stream.ATerminateOfOurs")
need("5044 8", MUST, "A connection that is lost ends the stream, and the program is told", "close.reset*",
     "Stream.AResetIsALoss")
need("5044 8", MUST, "A FIN inside an FPDU is an error; the FPDU is not delivered", "fpdu.cut_off*",
     "Stream.AFinInsideAnFpduIsALoss")
need("5044 8", MUST, "Errors of MPA are reported by a Terminate of layer 2: 02 CRC, 03 length or marker, 04 start-up frame",
     "crc.wrong terminate.llp fpdu.length_*", "HostileStart.replies_that_cannot_be_lived_with")

# --- RFC 6581

need("6581 6", MUST, "S=1 stands in frames of revision 2 only, and says that the enhanced block is there",
     "initiator.rev request.no_block",
     "MpaStart.EnhancedBlockNeedsRevision2")
need("6581 10", MUST, "A Reply has the enhanced block where the Request had it, also when it rejects, and else not",
     "request.good reject request.no_block request.rev_1",
     "Responder.ARejectionKeepsRevisionAndBlock")
need("6581 6", MUST, "A frame that announces the block and has less is none", "request.block_cut_* initiator.block_cut")
need("6581 8", MUST, "Errors of the negotiation are reported by a Terminate: 06 IRD too small, 07 no RTR frame in common",
     "initiator.ird_too_small p2p.no_match")
need("6581 9.1", MUST, "The Request has the IRD and ORD of the Initiator", "initiator.ird_ord")
need("6581 9.1", MUST, "The Reply's ORD is at most the Request's IRD", "ird_ord.fewer ird_ord.none", "Responder.IrdAndOrd")
need("6581 9.1", SHOULD, "The Reply's IRD is no less than the Request's ORD where the Responder can",
     "ird_ord.fewer ird_ord.more")
need("6581 9.1", MUST, "0x3FFF leaves IRD or ORD to the programs, and is answered with 0x3FFF", "ird_ord.no_*",
     "Responder.IrdAndOrd Initiator.IrdAndOrdFollowTheReply")
need("6581 9.1", MUST, "The programs are told the peer's IRD and ORD", "ird_ord.told initiator.told", "CmConnect.ReadDepthsAreNegotiated")
need("6581 9.1", MUST, "The Initiator has no more Read Requests outstanding than the Reply's IRD", "initiator.ord initiator.no_ird",
     "Initiator.IrdAndOrdFollowTheReply")
need("6581 9.1", MUST, "An Initiator that cannot serve the Reply's ORD sends a Terminate 2/0/06 and ends the connection",
     "initiator.ird_too_small p2p.ird_too_small")
need("6581 9.2", MUST, "A=1 in the Request names the RTR frames that the Initiator can send", "p2p.asks")
need("6581 9.2", MUST, "The Reply to A=1 has A=1 and an RTR frame, of those that were offered where it can",
     "rtr.all rtr.write rtr.read rtr.fpdu rtr.nothing_offered",
     "Responder.PicksOneRtrKind")
need("6581 9.2", SHOULD, "The Reply names each offered RTR frame that the Responder can take", "",
     exception="it names one, as every peer that is known; the RFC lets it leave out others")
need("6581 9.2", MUST, "Without A there is no RTR frame, and what stands there means nothing", "rtr.not_asked initiator.no_kinds "
     "initiator.rtr_unasked")
need("6581 9.2", MUST, "The Initiator's first FPDU is the RTR frame that was agreed on", "p2p.write p2p.read p2p.fpdu",
     "Stream.TheRtrFrameComesFirst")
need("6581 9.2", MUST, "An FPDU without a ULPDU stands at the beginning of a stream that agreed on it, and nowhere else",
     "fpdu.empty p2p.fpdu rtr.fpdu", "Answers.AnEmptyUlpdu Receiver.AnEmptyUlpduOpensAStreamThatAgreedOnIt")
need("5044 7.1.2", MUST, "In the peer-to-peer model, too, the Responder sends nothing before the first FPDU, the RTR frame",
     "responder.silent_rtr",
     "StreamResponderWait.WaitsForEverWhereTheInitiatorOwesTheFirstFpdu")
need("6581 9.2", MUST, "An RTR Read takes its MSN and its place among the reads", "rtr.read_counts",
     "SendPathTest.TheRtrReadTakesAnMsnAndASlot")
need("6581 9.2", MUST, "A Reply whose RTR frame the Initiator cannot send is answered with a Terminate 2/0/07", "p2p.no_match")
need("6581 9.2", MUST, "A=1 that was not asked for means nothing", "initiator.rtr_unasked",
     "Initiator.UnaskedPeerToPeerBitsAreIgnored")
need("6581 10", MUST, "A Request of revision 1 is answered with revision 1", "request.rev_1", "Responder.WhatTheRequestSays")
need("6581 10", "MAY", "An Initiator whose peer knows revision 1 only tries again with that", "initiator.reply_rev_1",
     "Initiator.ARevision1ReplyAsksForAnotherTry")

# --- RFC 5041, DDP

need("5041 4.4", MUST, "Each segment has a whole header",
     "fpdu.length_1 fpdu.length_tagged fpdu.length_untagged fpdu.length_read",
     "Answers.UlpduTooShortForItsOpcode")
need("5041 4.1", MUST, "Reserved bits are sent as 0", "ddp.sent_untagged ddp.sent_tagged",
     "Control.ReservedBitsAreIgnoredAndSentAsZero")
need("5041 4.1", MUST, "Reserved bits are ignored", "ddp.reserved", "Frames.ReservedBitsAreIgnored")
need("5041 4.1", MUST, "The version is 1; another one is an error", "write.dv_* send.dv_*", "Answers.DdpVersion")
need("5041 4.2", MUST, "A tagged segment is placed at its TO in the buffer of its STag, and nowhere else",
     "write.placed* write.whole_window write.segments",
     "DataTest.every_byte_and_the_bytes_around")
need("5041 4.3", MUST, "The MSN of a queue begins at 1 and grows by one with each message",
     "send.msn_* read.msn_* reader.msn ddp.sent_untagged",
     "UntaggedQueue.StartsAtOne UntaggedQueue.TheMsnWraps")
need("5041 4.3", MUST, "Each queue counts for itself", "ddp.queues_apart", "SegmentReceiver.EachQueueCountsForItself")
need("5041 5.3", MUST, "Untagged messages take the buffers of their queue in the order of the MSN",
     "fpdu.several* send.empty",
     "Rules.ReceivesAreTakenInTheOrderOfTheMessages")
need("5041 5.2", MUST, "All segments of an untagged message have its MSN, MO that follow each other from 0, and L on the "
     "last",
     "ddp.sent_untagged send.segments*", "SendPathTest.ASendCountsMsnAndOffset")
need("5041 5.2", MUST, "All segments of a tagged message have its STag, TO that follow each other, and L on the last",
     "ddp.sent_tagged write.segments",
     "SendPathTest.AWriteIsCutIntoContiguousSegments")
need("5041 5.3", MUST, "Messages are sent one after the other", "send.inside_send sent.in_order",
     "SendPathTest.MessagesAreNotInterleaved Answers.MessagesInsideASend")
need("5041 5.2", MUST, "A message of no bytes is one segment", "send.empty write.empty",
     "SendPathTest.AMessageOfNoBytesIsOneSegment")
need("5041 5.3", MUST, "Messages are delivered in the order of their MSN, once all that stands before them is placed",
     "ddp.in_order",
     "Rules.AReadSeesTheWritesBeforeIt")
need("5041 5.4", MUST, "A message is delivered when all of it is placed, and not before", "send.not_whole send.segments*",
     "Ending.TheReceiveOfAnUnfinishedMessageIsFlushed")
need("5041 7.1", MUST, "Tagged: the STag must be valid", "write.unknown_stag* write.wrong_key* write.stag_0 write.gone",
     "Answers.WriteToWhatItMustNotTouch")
need("5041 7.1", MUST, "Tagged: the STag must belong to the stream", "write.foreign", "Answers.WriteToWhatItMustNotTouch")
need("5041 7.1", MUST, "Tagged: the segment lies in its buffer",
     "write.before* write.behind* write.far_behind write.large_behind write.ends_at_2_64",
     "Answers.WriteThatEndsWithItsBuffer")
need("5041 7.1", MUST, "Tagged: the TO does not wrap", "write.wraps", "Answers.WriteToWhatItMustNotTouch")
need("5041 7.1", MUST, "Each segment is checked, not only a message's first", "write.second_bad",
     "Rules.SegmentsOfAWriteStandForThemselves")
need("5041 7.1", MUST, "Nothing of a segment that fails is placed, nor of what follows it", "write.large_behind write.read_only "
     "terminate.is_last*")
need("5041 8.3.1", MUST, "The program gives the right to read, to write, or both, and nothing goes without it",
     "write.read_only write.no_rights read.write_only read.no_rights", "AdapterMemory.writes AdapterMemory.reads")
need("5041 8.3.1", MUST, "A region that is taken back is out of the peer's reach", "write.gone read.gone",
     "LateAnswers.RegionThatGoesInTheMiddleOfAnFpdu")
need("5041 7.1", MUST, "Untagged: the queue exists", "send.qn_*", "Answers.SendWithWrongQueueMsnOrOffset")
need("5041 7.1", MUST, "Untagged: there is a buffer for the message", "send.no_buffer*",
     "ReceiverNotReady.APlainPeerIsToldAfterTheWait")
need("5041 7.1", MUST, "Untagged: the MSN is in range", "send.msn_*", "Answers.SendWithWrongQueueMsnOrOffset")
need("5041 7.1", MUST, "Untagged: the MO is the one that comes next", "send.mo_* read.mo",
     "Answers.SecondSegmentAtTheWrongOffset")
need("5041 7.1", MUST, "Untagged: the message fits its buffer", "send.too_long send.too_long_later send.exact",
     "Answers.SendLongerThanItsReceive")
need("5041 7.2", MUST, "Errors have the numbers of the RFC: 1/1/xx tagged, 1/2/xx untagged",
     "write.unknown_stag send.qn_4 terminate.layout",
     "TermError.NumbersOfTheSpecification")

# --- RFC 5040, RDMAP

need("5040 4.1", MUST, "The version is 1; another one is an error", "rdmap.rv_*", "Answers.RdmapVersion")
need("5040 4.1", MUST, "Each message has its opcode, its model and its queue",
     "sent.* reader.request* opcode.write_untagged opcode.send_tagged "
     "opcode.response_untagged opcode.request_tagged", "Opcode.TheTableOfTheSpecification")
need("5040 4.1", MUST, "Reserved bits of the control field are sent as 0", "ddp.sent_untagged",
     exception="where weft's extension was agreed on, one of them asks for a Delivered (spec/rdmap 4.2); towards others all are 0")
need("5040 4.1", MUST, "Opcodes that the RFCs do not define are not used", "opcode.12* opcode.13* opcode.14*",
     exception="12 to 14 are weft's own where its extension was agreed on (spec/mpa 2.7), and unexpected elsewhere")
need("5040 4.4", MUST, "A Read Request: queue 1, L, MO 0, a header of 28 bytes and nothing behind it",
     "reader.request* read.trailing read.qn_0",
     "Answers.ControlMessagesHaveTheirExactSize ReadRequest.LayoutOfTheSpecification")
need("5040 4.1", MUST, "The field of the STag is reserved in Sends that invalidate nothing: sent as 0, ignored",
     "send.word_ignored sent.plain sent.se",
     "Frames.TheUlpWordOfOtherOpcodesIsIgnored")
need("5040 4.8", MUST, "A Terminate: queue 2, MSN 1, MO 0, L", "terminate.header", "Stream.ATerminateOfOurs")
need("5040 4.8", MUST, "A Terminate: layer, error type, code, M, D, R as laid out",
     "terminate.layout terminate.bits terminate.read_bits",
     "Answers.TheExampleOfTheSpecification")
need("5040 4.8", SHOULD, "M and D are set, and the DDP header follows, for an error of one segment",
     "terminate.quotes_untagged terminate.quotes_tagged terminate.length",
     "TerminateEncode.HeadersOfEverySize")
need("5040 4.8", SHOULD, "R is set, and the Read Request's header follows, for an error of a Read Request",
     "terminate.quotes_read terminate.read_bits",
     "ReceivePathTest.TheQuoteOfARequestHasItsHeader")
need("5040 4.8", SHOULD, "No header follows where the error belongs to no segment", "terminate.llp")
need("5040 4.8", SHOULD, "The DDP header follows for errors of version and opcode, too, if possible", "rdmap.rv_* opcode.15*",
     exception="the header of another version, or of an opcode that is not known, says nothing that could be relied on")
need("5041 5.2", MUST, "A Write of no bytes is right whatever its STag", "write.empty", "Rules.AnEmptyWriteChecksNothing")
need("5040 5.1", MUST, "A Write takes no receive and completes nothing at its target", "write.silent")
need("5040 5.2", MUST, "A Read Request is answered with the bytes that it names, for the sink that it names",
     "read.served* read.large read.any_sink",
     "StreamOutput.AReadIsAnsweredFromItsSinkOn")
need("5040 5.2.1", MUST, "A Read Request of no bytes is answered, and its source not checked", "read.empty",
     "StreamOutput.AReadOfNoBytesChecksNoStag")
need("5040 8.1.1", MUST, "The source of a read needs the right to be read", "read.write_only read.no_rights",
     "Answers.ReadOfWhatItMustNotSee")
need("5040 5.2.2", MUST, "A response is placed in the sink and completes its read", "reader.response*",
     "OutboundReads.OldestFirst")
need("5040 5.3", MUST, "Sends take the next receive of queue 0", "send.plain* send.se*", "Rules.SolicitedKinds")
need("5040 5.3", MUST, "The STag that a Send invalidates is invalid when the Send is delivered", "send.inv send.se_inv",
     "Rules.InvalidationTakesEffectWithTheMessage ReceivePathTest.InvalidationComesBeforeTheCompletion")
need("5041 4.3", MUST, "All segments of a message have one opcode, queue and MSN", "ddp.sent_untagged send.opcode_changes", "Answers.MessagesInsideASend")
need("5040 5.4", MUST, "Nothing follows a Terminate, and what comes behind the error is not looked at",
     "terminate.is_last*", "Stream.ATerminateOfOurs")
need("5040 5.4", MUST, "A Terminate does not cut an FPDU in two", "terminate.behind_sends")
need("5040 5.4", MUST, "A Terminate is not answered, not even a wrong one; the stream is over", "terminate.received*",
     "Stream.ATerminateOfThePeersIsNotAnswered LateAnswers.ATerminateThatIsWrongItself")
need("5040 5.4", SHOULD, "What the Terminate says reaches the program", "terminate.blames_read",
     "ReceivedTerminate.EveryCodeHasItsStatus")
need("5040 5.5", MUST, "Messages leave in the order in which they were posted", "sent.in_order",
     "SendPathTest.MessagesAreNotInterleaved")
need("5040 5.5", MUST, "Read Requests are answered in their order", "read.in_order",
     "StreamOutput.AnswersComeInTheOrderOfTheRequests")
need("5040 5.5", MUST, "A Read Request sees what was written before it on the stream", "read.behind_write",
     "Rules.AReadSeesTheWritesBeforeIt")
need("5040 5.5", MUST, "A Send is delivered when everything before it is placed", "ddp.in_order write.placed*")
need("5040 5.5", MUST, "A request behind a fence waits for the reads before it", "", "SendPathTest.AFenceWaitsForReads")
need("5040 7.1", MUST, "Of several errors the Terminate tells the first", "terminate.first_error")
need("5040 6.1", MUST, "No more Read Requests are outstanding than the peer serves; more end the stream",
     "read.beyond_ird initiator.ord initiator.no_ord",
     "Answers.MoreReadsThanTheIrd SendPathTest.AtMostOrdReadsAreOut")
need("5040 6.2", MUST, "A stream that is closed in order ends without a Terminate, when what was posted is sent",
     "close.program* close.sends_first close.drop",
     "Stream.CloseSendsWhatIsPostedAndAsksToHaveItCovered")
need("5040 6.2.1", SHOULD, "A stream that is aborted says so with a Terminate", "close.error_state",
     "Stream.AbortSaysTerminate")
need("5040 7.1", MUST, "When a stream ends, what is posted completes with an error", "terminate.received close.fin",
     "Failure.requests_in_error_are_flushed_in_order")
need("5040 8.1.1", MUST, "STags are hard to predict", "",
     "MemoryTableTest.StagsAreHardToPredict MemoryTableTest.FoundByItsWholeStag")
need("5040 7.2", MUST, "Read Request: the STag must be valid", "read.unknown_stag* read.gone",
     "Answers.ReadOfWhatItMustNotSee")
need("5040 7.2", MUST, "Read Request: the source lies in its buffer", "read.before read.behind read.huge",
     "Answers.ReadOfWhatItMustNotSee")
need("5040 7.2", MUST, "Read Request: the STag belongs to the stream; the TO does not wrap", "read.foreign read.wraps",
     "Answers.ReadOfWhatItMustNotSee")
need("5040 7.2", MUST, "A Send that invalidates what it cannot is an error", "send.inv_unknown send.inv_foreign",
     "Answers.SendWithInvalidateOfABadStag")
need("5040 7.2", MUST, "An opcode that is not known, or stands in the wrong kind of segment, is an error", "opcode.*",
     "Answers.UnexpectedOpcode")
need("5041 7.1", MUST, "A response has the STag and TO of the oldest read, and ends with its last byte",
     "reader.wrong_stag reader.own_region reader.wrong_to "
     "reader.too_long reader.too_long_later reader.too_short reader.unasked*", "Answers.ReadResponseThatWasNotAskedFor")
need("5042 6.2.1", MUST, "A read opens no more of the program's memory than its response needs", "reader.sink_is_closed",
     "SendPathTest.AReadRequestExposesNoLkey")

# --- RFC 7306

need("7306 4.1", MUST, "Opcodes 8 to 11 are understood where both sides know RFC 7306", "immediate.8 atomic.fetch_add",
     exception="they are taken where weft's extension bit was agreed on in the start-up frames (spec/mpa 2.7); an RNIC "
     "that knows RFC 7306 but not the bit "
     "is taken for one that does not, since the RFC has no way to ask")
need("7306 4.1", MUST, "They are unexpected opcodes elsewhere", "opcode.8 opcode.9 opcode.10 opcode.11")
need("7306 5.1.1", MUST, "FetchAdd adds to the 64 bits, without carry over the fields of its mask, and answers with what "
     "was there",
     "atomic.fetch_add atomic.add_wraps atomic.add_fields", "ReceivePathTest.AtomicOperations")
need("7306 5.1.2", MUST, "CmpSwap compares under one mask and swaps under another",
     "atomic.compare_swap atomic.compare_differs atomic.masks",
     "ReceivePathTest.AtomicOperations")
need("7306 5.2.1", MUST, "An Atomic Request: queue 1, in one MSN space with Read Requests, 52 bytes",
     "atomic.sent_add atomic.sent_swap atomic.in_order",
     "AtomicRequest.LayoutOfTheSpecification")
need("7306 5.2.2", MUST, "An Atomic Response: queue 3, MSN from 1, the request's identifier",
     "atomic.response atomic.unasked", "AtomicResponse.LayoutOfTheSpecification")
need("7306 5.3", MUST, "An atomic is one towards the other atomics of the device", "",
     "Atomics.additions_of_two_queue_pairs_are_all_counted Atomics.a_value_is_swapped_once")
need("7306 5.4", MUST, "Atomics and Reads are answered in their order, and count against the IRD together",
     "atomic.in_order",
     "Answers.MoreReadsThanTheIrd InboundReads.AnsweredInTheOrderOfTheRequests")
need("7306 6.3", MUST, "Immediate Data: queue 0, 8 bytes, a message of its own",
     "immediate.8 immediate.9 immediate.msn immediate.short immediate.long immediate.sent")
need("7306 6.4", MUST, "Immediate Data is delivered behind the Write before it", "immediate.behind_write",
     "Rules.NothingOvertakesAMessageThatWaits")
need("7306 8.1", MUST, "A Terminate for an atomic has its DDP header, and not the request's own", "atomic.quoted",
     "Answers.AtomicOnWhatItMustNotTouch")
need("7306 5.2.2", MUST, "A response that nobody asked for ends the stream", "atomic.unasked",
     "Answers.AtomicResponseThatWasNotAskedFor")
need("7306 8.2", MUST, "An atomic's address is a multiple of 8; another one draws a Terminate 0/2/07", "atomic.misaligned",
     "Answers.AtomicOnWhatItMustNotTouch Answers.AtomicOnMemoryThatIsMisaligned")
need("7306 5.2.1", MUST, "An atomic code that there is not is an error", "atomic.code", "Answers.AtomicOnWhatItMustNotTouch")
need("7306 5.2.1", MUST, "Fields that an atomic does not use are not looked at", "atomic.add_ignores")
need("5040 8.1.1", MUST, "An atomic needs a right, a valid STag of the stream, and a place in its buffer",
     "atomic.no_rights atomic.unknown_stag atomic.foreign atomic.behind", "Answers.AtomicOnWhatItMustNotTouch")
