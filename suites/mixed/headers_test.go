//go:build linux

package mixed_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/datapath/roce"
	"github.com/rocebed/rocebed/testbed/mixed"
)

// headers is what of a packet's headers doesn't turn on who sent it to whom, when, and after what. IPv4's identification is
// left out: rxe counts it up, and in packets that may not be fragmented it means nothing (RFC 6864). So are the AckReq bit, which
// is each make's own policy, and a datagram's TTL (rxe's departure HopLimitOfRoute).
type headers struct {
	Class    uint8
	TTL      uint8
	DF       bool
	Checksum uint16 // UDP's
	Entropy  bool   // the UDP source port is in RoCEv2's range
	Pad      int
	BTH      roce.BTH
	Syndrome roce.Syndrome
}

// sent takes what a host sends.
type sent struct {
	own roce.Addr

	mu       sync.Mutex
	v        roce.View
	seen     map[headers]int
	problems []string
}

// Packet implements fabric.PacketSink.
func (s *sent) Packet(_ loop.Time, data []byte, length int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.v.Parse(data); err != nil || length != len(data) {
		s.problem("%d of %d bytes: %v: %x", len(data), length, err, data)
		return nil
	}
	if s.v.Kind() != roce.KindRoCE || s.v.SrcAddr() != s.own {
		return nil
	}
	if !s.v.ICRCOK() || !s.v.IPv4OK() {
		s.problem("ICRC right %v, IPv4 checksum right %v: %x", s.v.ICRCOK(), s.v.IPv4OK(), data)
	}
	h := headers{Class: s.v.TrafficClass(), TTL: s.v.TTL(), DF: s.v.IPv4DF(), Checksum: s.v.UDPChecksum(), Entropy: s.v.SrcPort() >= 0xc000, Pad: s.v.Pad(), BTH: s.v.BTH()}
	h.BTH.DestQP, h.BTH.PSN, h.BTH.AckReq = 0, 0, false
	if o := h.BTH.Opcode; o.Transport() == roce.TransportUD {
		h.TTL = 0
	} else if o.Info().Any(roce.HasAETH) {
		if h.Syndrome = s.v.AETH().Syndrome; h.Syndrome.Kind() == roce.SyndromeRNRNAK {
			h.Syndrome = roce.RNRNAK(0) // which cases come to one is a matter of time
		}
	}
	s.seen[h]++
	return nil
}

func (s *sent) problem(format string, args ...any) {
	if len(s.problems) < 10 {
		s.problems = append(s.problems, fmt.Sprintf(format, args...))
	}
}

// watch begins to take what a host sends until the container is over, or stop is called.
func watch(ctx context.Context, f *mixed.Fabric, host string) (s *sent, stop func() error) {
	GinkgoHelper()
	nic := f.Host(host).NICs()[0]
	s = &sent{own: roce.AddrFrom(nic.GID), seen: map[headers]int{}}
	end, err := f.Capture(context.WithoutCancel(ctx), nic.Port, s)
	Expect(err).NotTo(HaveOccurred())
	stop = sync.OnceValue(func() error { _, _, err := end(); return err })
	DeferCleanup(stop)
	return s, stop
}

// only are those that one has and the other has not.
func only(a, b *sent) (out []string) {
	for _, h := range slices.Collect(maps.Keys(a.seen)) {
		if b.seen[h] == 0 {
			out = append(out, fmt.Sprintf("%d × %+v", a.seen[h], h))
		}
	}
	slices.Sort(out)
	return out
}
