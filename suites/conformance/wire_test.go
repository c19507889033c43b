//go:build linux

package conformance_test

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/datapath/roce"
	"github.com/rocebed/rocebed/testbed/kernel"
	"github.com/rocebed/rocebed/testbed/record"
)

// keepEnv names a file for a packet of each sort that rxe sent; datapath/roce keeps such a file
// and says how to remake it.
const keepEnv = "ROCEBED_KEEP_PACKETS"

// sort is what makes one packet worth keeping beside another.
type sort struct {
	ipv6     bool
	opcode   roce.Opcode
	syndrome roce.Syndrome // of NAKs
	pad      int
	large    bool // above 1500 bytes: one of a transport is enough
}

// wire takes what passes a port and holds it against roce: rxe's packets, decoded and encoded again,
// are the same bytes, checksums and ICRC included.
type wire struct {
	mu       sync.Mutex
	packets  uint64
	seen     map[roce.Opcode]uint64
	nak      map[roce.Syndrome]uint64
	problems []string
	kept     map[sort]bool
	buf      []byte
	v        roce.View
	p        roce.Packet
	frames   [][]byte
	times    []loop.Time
}

// watched are the wires of all contexts; their kept packets go to one file.
var watched []*wire

// Packet implements fabric.PacketSink.
func (w *wire) Packet(at loop.Time, data []byte, length int) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if length != len(data) {
		w.problem("%d bytes were captured of %d", len(data), length)
		return nil
	}
	if err := w.v.Parse(data); err != nil {
		w.problem("%v: %x", err, data)
		return nil
	}
	if w.v.Kind() != roce.KindRoCE {
		return nil
	}
	w.packets++
	if !w.v.ICRCOK() || !w.v.IPv4OK() {
		w.problem("ICRC right %v, IPv4 checksum right %v: %x", w.v.ICRCOK(), w.v.IPv4OK(), data)
	}
	err := w.p.Decode(&w.v)
	if err == nil {
		w.buf, err = w.p.Append(w.buf[:0])
	}
	if err != nil || !bytes.Equal(w.buf, data) {
		w.problem("%v: %v\nrxe sent     %x\nencoded again %x", w.v.Opcode(), err, data, w.buf)
	}
	w.sortOut(at, data)
	return nil
}

func (w *wire) sortOut(at loop.Time, data []byte) {
	o := w.v.Opcode()
	w.seen[o]++
	s := sort{ipv6: w.v.IsIPv6(), opcode: o, pad: w.v.Pad(), large: len(data) > 1500}
	if o == roce.RCAcknowledge {
		if aeth := w.v.AETH(); aeth.Syndrome.Kind() != roce.SyndromeACK {
			s.syndrome = aeth.Syndrome
			w.nak[aeth.Syndrome]++
		}
	}
	if s.large {
		s = sort{ipv6: s.ipv6, opcode: roce.Opcode(o.Transport()) << 5, large: true}
	}
	if !w.kept[s] && os.Getenv(keepEnv) != "" {
		w.kept[s] = true
		w.frames, w.times = append(w.frames, bytes.Clone(data)), append(w.times, at)
	}
}

func (w *wire) problem(format string, args ...any) {
	if len(w.problems) < 10 {
		w.problems = append(w.problems, fmt.Sprintf(format, args...))
	}
}

// watch begins to take what passes the first host's port; the function it returns ends that.
func watch(ctx context.Context, f *kernel.Fabric) (w *wire, stop func() error, err error) {
	w = &wire{seen: map[roce.Opcode]uint64{}, nak: map[roce.Syndrome]uint64{}, kept: map[sort]bool{}}
	end, err := f.Capture(ctx, f.Hosts()[0].NICs()[0].Port, w)
	if err != nil {
		return nil, nil, err
	}
	watched = append(watched, w)
	return w, sync.OnceValue(func() error {
		_, missed, err := end()
		AddReportEntry("packets", ReportEntryVisibilityFailureOrVerbose, fmt.Sprintf("%d, %d missed by the capture", w.packets, missed))
		return err
	}), nil
}

// itsPackets is the last spec of a context: what passed the wire during the others.
func itsPackets(w **wire, stop *func() error, opcodes []roce.Opcode, naks []roce.Syndrome) {
	It("sends packets that roce decodes and encodes to the same bytes", func() {
		Expect((*stop)()).To(Succeed())
		Expect((*w).problems).To(BeEmpty())
		missing := slices.DeleteFunc(slices.Clone(opcodes), func(o roce.Opcode) bool { return (*w).seen[o] > 0 })
		Expect(missing).To(BeEmpty(), "opcodes that no case made rxe send; it sent %v", (*w).seen)
		Expect(slices.DeleteFunc(slices.Clone(naks), func(s roce.Syndrome) bool { return (*w).nak[s] > 0 })).To(BeEmpty(), "NAKs that no case made rxe send; it sent %v",
			slices.Sorted(maps.Keys((*w).nak)))
	})
}

// allOpcodes are those of a transport that verbs can ask for; annex A19's need other calls.
func allOpcodes(transports ...roce.Transport) (all []roce.Opcode) {
	for o := range 256 {
		o := roce.Opcode(o)
		if i := o.Info(); i.Known() && slices.Contains(transports, i.Transport) && o != roce.RCFlush && o != roce.RCAtomicWrite {
			all = append(all, o)
		}
	}
	return all
}

// keepPackets writes what was kept, when it was asked for.
func keepPackets() error {
	name := os.Getenv(keepEnv)
	if name == "" {
		return nil
	}
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	c, err := record.NewCapture(file, "h1:eth0")
	if err != nil {
		return err
	}
	var last loop.Time
	for _, w := range watched {
		for i, f := range w.frames {
			last = max(last+loop.Time(time.Microsecond), w.times[i])
			if err := c.Packet(last, f, len(f)); err != nil {
				return err
			}
		}
	}
	return c.Close()
}
