package record

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
	"github.com/google/gopacket/pcapgo"

	"github.com/rocebed/rocebed/datapath/loop"
)

// Capture writes packets as pcapng: one Ethernet interface, times in fabric time since the
// fabric started, so that a reader's time column is the cluster's. It is for one goroutine.
type Capture struct {
	w     *pcapgo.NgWriter
	under io.WriteCloser
}

// NewCapture begins a capture of the interface called name; Close closes under.
func NewCapture(under io.WriteCloser, name string) (*Capture, error) {
	w, err := pcapgo.NewNgWriterInterface(under, pcapgo.NgInterface{
		Name: name, Comment: "times are fabric time", LinkType: layers.LinkTypeEthernet, TimestampResolution: 9,
	}, pcapgo.NgWriterOptions{SectionInfo: pcapgo.NgSectionInfo{Application: "rocebed"}})
	if err != nil {
		return nil, fmt.Errorf("capture %s: %w", name, errors.Join(err, under.Close()))
	}
	return &Capture{w: w, under: under}, nil
}

// Packet implements fabric.PacketSink.
func (c *Capture) Packet(at loop.Time, data []byte, length int) error {
	return c.w.WritePacket(gopacket.CaptureInfo{Timestamp: time.Unix(0, int64(at)), CaptureLength: len(data), Length: length}, data)
}

// Close writes out what is buffered and closes the file.
func (c *Capture) Close() error { return errors.Join(c.w.Flush(), c.under.Close()) }

// CaptureName is the file of data/ that holds the capture of a port.
func CaptureName(node, port string) string { return CapturesDir + "/" + node + "-" + port + ".pcapng" }
