package compare

import (
	"fmt"
	"slices"
	"strings"
)

// Difference is something in which backends differ, and why. Texts are Markdown, links relative to docs/.
type Difference struct {
	What     string `json:"what"`
	Kernel   string `json:"kernel"`   // what it is there
	Software string `json:"software"` // what it is on soft and sim
	Why      string `json:"why,omitempty"`

	alike []string               // backends that don't differ in it; nil: soft and sim
	shows []string               // rows that it shows in
	when  func(*Comparison) bool // it matters only then; nil: always
}

var (
	speed    = []string{"goodput", "algbw", "busbw", "duration", "p50", "p99"}
	recovery = []string{"retries", "duplicates", "completer_retry_err", "out_of_seq_request", "rcvd_seq_err", "duplicate_request", "sent_pkts", "retransmitted_packets"}
	luck     = join(recovery, []string{"hits", "busbw", "algbw", "goodput", "duration", "p99"})
	marks    = []string{"ecn_marked", "np_cnp_sent", "rp_cnp_handled", "goodput", "jain"}
	losses   = []string{"qdisc_drops", "queue_drops", "port_drops", "headroom_drops"}
	realTime = []string{"kernel", "soft"}
	none     = []string{} // no two are alike
)

// faulty says that a fault of one of these kinds, or any where none is named, is in a comparison.
func faulty(kinds ...string) func(*Comparison) bool {
	return func(c *Comparison) bool {
		return slices.ContainsFunc(c.Faults, func(g Group) bool { return len(kinds) == 0 || slices.Contains(kinds, g.Kind) })
	}
}

// moved says that one of these counters moved in a run.
func moved(counters ...string) func(*Comparison) bool {
	return func(c *Comparison) bool {
		return slices.ContainsFunc(c.Counters, func(r Row) bool { return slices.Contains(counters, r.Name) })
	}
}

func join(lists ...[]string) []string { return slices.Concat(lists...) }

// Differences are all of them, in the order of the documentation.
func Differences() []Difference { return slices.Clone(differences) }

var differences = []Difference{
	{
		What:     "transport",
		Kernel:   "rdma_rxe's, with its departures from the specification ([verbs.md](verbs.md))",
		Software: "the specification; `nics.profile: rxe` has rxe's limits, its endless seventh retry and its deafness to NAKs while it goes back",
		Why:      "rxe is what it is",
		shows:    recovery,
	},
	{
		What:     "unacknowledged packets",
		Kernel:   "at most 128, an ACK asked for every 64",
		Software: "the profile's (4096 and 16 by default)",
		Why:      "hardware is not rxe: the more is under way when a packet is lost, the more comes out of sequence and is sent again",
		shows:    join(speed, recovery),
	},
	{
		What:     "host and PCIe latency",
		Kernel:   "the machine's",
		Software: "the profile's stages: doorbell, WQE fetch, DMA, CQE",
		Why:      "in real time the machine's own times are hundreds of times longer",
		shows:    speed,
	},
	{
		What:     "the machine's own time",
		Kernel:   "is part of every figure, divided by the dilation",
		Software: "in `soft` likewise; in `sim` nothing takes time but what is modelled",
		Why:      "a real clock goes on while a processor is busy",
		alike:    realTime, shows: speed,
	},
	{
		What:     "CE marks, CNPs, DCQCN",
		Kernel:   "with `nics.dcqcn`: an agent answers marks and paces, for whatever program",
		Software: "the profile's, or `nics.dcqcn`",
		Why:      "rxe itself sends no CNP and has no pacing",
		shows:    marks, when: moved("ecn_marked", "np_cnp_sent"),
	},
	{
		What:     "PFC",
		Kernel:   "`switches.pfc`: real frames on the veths; NICs obey and never pause",
		Software: "`switches.pfc`, NICs obey and send",
		Why:      "rxe takes what comes, as fast as the machine lets it",
		shows:    join(losses, []string{"tx_prio_pause", "retries"}), when: moved("tx_prio_pause", "qdisc_drops", "queue_drops", "port_drops", "headroom_drops"),
	},
	{
		What:     "marker",
		Kernel:   "likewise; with `ecn.marker: red`, and before Linux 6.16, `sch_red`, which spaces marks evenly: at a probability p per packet 2p/(1+p) are marked",
		Software: "each packet by lot, decided as it leaves",
		Why:      "DCQCN's curve is per packet",
		shows:    marks, when: moved("ecn_marked"),
	},
	{
		What:     "queues",
		Kernel:   "eight, strict and weighted, where a setting takes them; else one FIFO a port",
		Software: "eight, strict and weighted",
		Why:      "without one of them the kernel's own shaper serves",
	},
	{
		What:     "buffer",
		Kernel:   "likewise where a setting takes it; else `switches.buffer` a port",
		Software: "the same a queue; shared memory with `switches.memory` or PFC",
		shows:    losses, when: moved(losses...),
	},
	{
		What:     "spreading over equal paths",
		Kernel:   "by flow, the kernel's hash",
		Software: "by flow, our own; spray, adaptive, flowlet",
		Why:      "the same flow may take another path on another backend",
		shows:    join(luck, []string{"jain", "p50"}),
	},
	{
		What:     "switch",
		Kernel:   "forwards as it arrives in a socket buffer",
		Software: "store and forward, whole frames",
		shows:    []string{"p50"},
	},
	{
		What:     "a reordered packet",
		Kernel:   "overtakes those on the link: it skips the link's own delay too",
		Software: "overtakes those that the fault holds; the link's delay it takes",
		Why:      "nothing is faster than a link in virtual time",
		shows:    recovery, when: faulty("reorder"),
	},
	{
		What:     "when a fault strikes",
		Kernel:   "tens of microseconds after its time, at dilation 1024; one of the fabric's that is due at time 0 before the first packet",
		Software: "one look-ahead (the shortest link's delay) after it, in `sim`",
		Why:      "a real kernel takes a while to be told",
		alike:    none, shows: []string{"hits"}, when: faulty(),
	},
	{
		What:     "which packets a fault hits",
		Kernel:   "by their ordinal on the link: the same seed, fault and port hit the same ordinals",
		Software: "the same ordinals",
		Why:      "packets come in another order, so that it may be others: one lost at a message's end waits for the timer, one before costs a round trip",
		alike:    none, shows: luck, when: faulty("loss", "corrupt", "duplicate", "reorder", "delay"),
	},
	{
		What:     "routes after a link went down",
		Kernel:   "milliseconds of wall time",
		Software: "at once: one look-ahead after its ends have noticed, in `sim`",
		alike:    none, shows: []string{"duration", "retries"}, when: faulty("down", "flap"),
	},
	{
		What:     "a link without delay",
		Kernel:   "is one",
		Software: "has 1 ns in `sim`, with a warning",
		Why:      "what takes no time can't be spread over cores",
		alike:    realTime,
	},
	{
		What:     "fragmentation, TCP, ping",
		Kernel:   "the kernel's",
		Software: "in `soft`",
		Why:      "in `sim` there is RoCE and flow control",
		alike:    realTime,
	},
	{
		What:     "readings during the run",
		Kernel:   "every second of wall time",
		Software: "in `sim` by fabric time: every 50 µs at first, half as often after each 200, and less often on large fabrics",
		alike:    realTime,
	},
	{
		What:     "timeouts of the run itself",
		Kernel:   "wall time",
		Software: "in `sim` fabric time: a verbs call may take 1 s",
		alike:    realTime,
	},
}

// tells says that two backends differ in it.
func (d *Difference) tells(a, b string) bool {
	alike := d.alike
	if alike == nil {
		alike = []string{"soft", "sim"}
	}
	return a != b && !(slices.Contains(alike, a) && slices.Contains(alike, b))
}

// explain judges every row and gives those that differ the differences of the backends that may be behind it: of the
// backends whose values lie furthest apart.
func (c *Comparison) explain() {
	var rows []*Row
	for _, groups := range [][]Group{c.Workloads, c.Faults} {
		for _, g := range groups {
			for i := range g.Rows {
				rows = append(rows, &g.Rows[i])
			}
		}
	}
	for i := range c.Counters {
		rows = append(rows, &c.Counters[i])
	}
	for _, r := range rows {
		r.judge()
	}
	for i := range differences {
		d, told := &differences[i], false
		if d.when != nil && !d.when(c) {
			continue
		}
		for _, r := range rows {
			if !r.Differs || !slices.Contains(d.shows, r.Name) || !d.tells(c.ends(r)) {
				continue
			}
			if !told {
				told, c.Reasons = true, append(c.Reasons, *d)
			}
			r.Why = append(r.Why, len(c.Reasons)-1)
		}
	}
}

// ends are the backends of the runs with the least and the largest value.
func (c *Comparison) ends(r *Row) (least, most string) {
	lo, hi := -1, -1
	for i, v := range r.Values {
		if v == nil {
			continue
		}
		if lo < 0 || *v < *r.Values[lo] {
			lo = i
		}
		if hi < 0 || *v > *r.Values[hi] {
			hi = i
		}
	}
	return c.Runs[lo].Backend, c.Runs[hi].Backend
}

// DifferencesTable is all of them as a table in Markdown.
func DifferencesTable() string {
	var b strings.Builder
	b.WriteString("| | `kernel` | `soft` and `sim` | why |\n| --- | --- | --- | --- |\n")
	for _, d := range differences {
		why := d.Why
		if why != "" {
			why += " "
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s|\n", d.What, d.Kernel, d.Software, why)
	}
	return b.String()
}
