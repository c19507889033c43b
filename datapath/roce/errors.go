package roce

// Error is why a frame has no, or no valid, wire form. The sender of a frame may be anybody, so errors
// of Parse are values that allocate nothing; a caller adds the port and what it does with the frame.
type Error uint8

// The errors.
const (
	ErrTruncated   Error = iota + 1 // the frame ends within a header
	ErrLength                       // a length field says more than there is, or less than its own header
	ErrVersion                      // the IP version isn't the EtherType's
	ErrPad                          // the pad is longer than what the packet carries
	ErrBTHVersion                   // the BTH's header version isn't 0
	ErrNotRoCE                      // not a RoCEv2 packet
	ErrOptions                      // an IPv4 header with options, which a Packet has no place for
	ErrAddress                      // addresses of two families, or mapped ones in an IPv6 header
	ErrTooLong                      // more than an IP packet carries
	ErrPayloadSize                  // the payload isn't PayloadLen bytes long
)

var errorTexts = [...]string{
	ErrTruncated: "the frame ends within a header", ErrLength: "a length field doesn't fit the frame",
	ErrVersion: "the IP version isn't the EtherType's", ErrPad: "the pad is longer than what the packet carries",
	ErrBTHVersion: "the BTH's header version isn't 0", ErrNotRoCE: "not a RoCEv2 packet",
	ErrOptions: "an IPv4 header with options", ErrAddress: "the addresses aren't of one family",
	ErrTooLong: "more than an IP packet carries", ErrPayloadSize: "the payload isn't as long as PayloadLen says",
}

func (e Error) Error() string {
	if int(e) < len(errorTexts) && e != 0 {
		return "roce: " + errorTexts[e]
	}
	return "roce: unknown error"
}
