package silicon

import (
	"fmt"

	"github.com/rocebed/rocebed/datapath/dcqcn"
	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/topo"
)

// leastPackets is what a flow sends a second of wall time, however slow DCQCN makes it: of the largest packets that its link takes. Slower
// ones would get few of a reaction point's decisions, and wait for seconds behind one of them.
const leastPackets = 10

// LeastRate keeps the least rate of a port's flows above what wall time can pace at a dilation (0: there is no wall time), and says what it
// changed; empty: nothing.
func LeastRate(p dcqcn.Params, l *topo.Link, d loop.Dilation) (_ dcqcn.Params, warning string) {
	if d == 0 {
		return p, ""
	}
	floor := dcqcn.Rate(uint64(l.MTU+14+24) * 8 * leastPackets * uint64(d.Factor()))
	out, raised := p.WithMinRate(min(floor, dcqcn.Rate(l.Rate)))
	if !raised {
		return p, ""
	}
	if out.RPGMinRate == dcqcn.Rate(l.Rate) {
		return out, fmt.Sprintf("DCQCN slows nothing down on a link of %v at a dilation of %v: its rpg_min_rate of %v is the line rate here, which is less than ten packets a second of wall time; take a smaller dilation",
			l.Rate, d, p.RPGMinRate)
	}
	const mega = 1e6
	return out, fmt.Sprintf("DCQCN's rpg_min_rate of %v is %v here: ten packets a second of wall time at a dilation of %v", p.RPGMinRate, (out.RPGMinRate+mega/2)/mega*mega, d)
}
