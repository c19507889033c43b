package analysis

import (
	"bytes"
	"fmt"
	"net/netip"
	"path"
	"slices"
	"strings"

	"github.com/rocebed/rocebed/datapath/roce"
	"github.com/rocebed/rocebed/testbed/metrics"
	"github.com/rocebed/rocebed/testbed/record"
	"github.com/rocebed/rocebed/topo"
)

// Comparison is what a NIC counted beside what a capture at its port saw.
type Comparison struct {
	Node              string `json:"node"`
	Port              string `json:"port"`
	Sent              uint64 `json:"sent_pkts"`
	SentSeen          uint64 `json:"sent_seen"` // packets that the NIC sent in the capture
	Rcvd              uint64 `json:"rcvd_pkts"`
	RcvdSeen          uint64 `json:"rcvd_seen"`          // packets to it
	SentLate          uint64 `json:"sent_late"`          // of Sent: packets from while the captures ended, which this one may lack
	RcvdLate          uint64 `json:"rcvd_late"`          // of Rcvd: likewise
	RetransmittedSeen uint64 `json:"retransmitted_seen"` // of SentSeen: those whose (destination QP, opcode class, PSN) was sent before
}

// Problem says what doesn't agree, or nothing. A NIC counts every packet that it sends; of those
// that arrive it leaves out the damaged ones, so it may count fewer, never more. Packets that were
// under way when the captures ended may be missing there.
func (c Comparison) Problem() string {
	var wrong []string
	if c.SentSeen > c.Sent || c.SentSeen+c.SentLate < c.Sent {
		wrong = append(wrong, fmt.Sprintf("sent_pkts grew by %d, the capture has %d packets that it sent", c.Sent, c.SentSeen))
	}
	if c.Rcvd > c.RcvdSeen+c.RcvdLate {
		wrong = append(wrong, fmt.Sprintf("rcvd_pkts grew by %d, the capture has %d packets that it got", c.Rcvd, c.RcvdSeen))
	}
	if len(wrong) == 0 {
		return ""
	}
	return c.Node + ":" + c.Port + ": " + strings.Join(wrong, "; ")
}

// plannedPort is what CompareCounters needs of plan.json.
type plannedPort struct {
	Ref  topo.PortRef
	Addr netip.Prefix
}

// Ending are readings from right before the captures ended and from after that: what they differ by passed
// while captures ended. Without any, nothing did.
type Ending struct{ Before, After []metrics.Sample }

// grew is by how much a port's counters grew in between.
func (e Ending) grew(node, port string, names ...string) uint64 {
	if e.Before == nil {
		return 0
	}
	sum := func(all []metrics.Sample) (n float64) {
		for _, s := range all {
			if slices.Contains(names, s.Name) && slices.Equal(s.Labels, []string{node, port}) {
				n += s.Value
			}
		}
		return n
	}
	return uint64(max(0, sum(e.After)-sum(e.Before)))
}

// CompareCounters compares the counters of every NIC at whose port there is a complete capture
// with what that saw. The readings before must have been taken before the captures began.
func CompareCounters(r *record.Reader, reg *metrics.Registry, captures []string, ending Ending) ([]Comparison, error) {
	table, err := r.Table(reg)
	if err != nil {
		return nil, err
	}
	var plan []struct {
		Ports []plannedPort `json:"ports"`
	}
	if err := r.JSON(record.PlanFile, &plan); err != nil {
		return nil, err
	}
	var out []Comparison
	for _, node := range plan {
		for _, p := range node.Ports {
			name := record.CaptureName(p.Ref.Node, p.Ref.Port)
			labels := map[string]string{"node": p.Ref.Node, "port": p.Ref.Port}
			nic, err := table.Select("sent_pkts", labels)
			if err != nil {
				return nil, err
			}
			if len(nic) == 0 || !slices.Contains(captures, name) {
				continue
			}
			sent, rcvd := []string{"sent_pkts"}, []string{"rcvd_pkts"}
			// rxe knows nothing of CNPs: where an agent sends and takes them, it counts them.
			if apart, err := table.Select("roce_unmapped", labels); err != nil {
				return nil, err
			} else if len(apart) > 0 {
				sent, rcvd = append(sent, "np_cnp_sent"), append(rcvd, "rp_cnp_handled", "rp_cnp_ignored")
			}
			c := Comparison{Node: p.Ref.Node, Port: p.Ref.Port}
			c.SentLate, c.RcvdLate = ending.grew(c.Node, c.Port, sent...), ending.grew(c.Node, c.Port, rcvd...)
			for _, name := range sent {
				c.Sent += uint64(table.Total(name, labels))
			}
			for _, name := range rcvd {
				c.Rcvd += uint64(table.Total(name, labels))
			}
			if err := c.count(r, name, p.Addr.Addr()); err != nil {
				return nil, err
			}
			out = append(out, c)
		}
	}
	return out, nil
}

func (c *Comparison) count(r *record.Reader, name string, own netip.Addr) error {
	b, err := r.File(name)
	if err != nil {
		return err
	}
	type key struct {
		dst    roce.Addr
		qpn    uint32
		answer bool
		psn    roce.PSN
	}
	sent := map[key]bool{}
	ours := roce.AddrFrom(own)
	err = ReadCapture(bytes.NewReader(b), func(p *Packet) error {
		// A NIC whose GID is wrong sends from another address; what isn't for it is from it all the same.
		switch sends := p.SrcAddr() == ours || p.DstAddr() != ours; {
		case sends:
			c.SentSeen++
			k := key{p.DstAddr(), p.DestQP(), p.Info().Any(roce.Response), p.PSN()}
			if sent[k] && !k.answer && p.Opcode() != roce.CNP {
				c.RetransmittedSeen++
			}
			sent[k] = true
		default:
			c.RcvdSeen++
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("%s: %w", path.Base(name), err)
	}
	return nil
}
