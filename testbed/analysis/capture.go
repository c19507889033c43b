package analysis

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/google/gopacket/pcapgo"

	"github.com/rocebed/rocebed/datapath/roce"
)

// Packet is a RoCEv2 packet of a capture. The View is valid during the call that it is given to.
type Packet struct {
	At time.Duration // fabric time since the fabric started
	roce.View
}

// ReadCapture gives the RoCEv2 packets of a pcapng capture to each, in order. Other packets (ARP,
// TCP, ICMP) are passed over, and so are those whose lengths or headers a fault has damaged; a packet
// that was cut by the capture itself is an error.
func ReadCapture(r io.Reader, each func(*Packet) error) error {
	in, err := pcapgo.NewNgReader(r, pcapgo.DefaultNgReaderOptions)
	if err != nil {
		return fmt.Errorf("capture: %w", err)
	}
	var p Packet
	for n := 1; ; n++ {
		data, info, err := in.ZeroCopyReadPacketData()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("capture: packet %d: %w", n, err)
		}
		if len(data) < info.Length {
			return fmt.Errorf("capture: packet %d: %d bytes of %d were captured: capture whole packets", n, len(data), info.Length)
		}
		if p.Parse(data) != nil || p.Kind() != roce.KindRoCE {
			continue
		}
		p.At = time.Duration(info.Timestamp.UnixNano())
		if err := each(&p); err != nil {
			return err
		}
	}
}
