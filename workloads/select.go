package workloads

import (
	"fmt"
	"path"
	"strings"

	"github.com/rocebed/rocebed/topo"
	"github.com/rocebed/rocebed/topo/strict"
)

// pair is a requester's NIC and a responder's.
type pair struct{ from, to topo.PortRef }

// rank is an emulated GPU and the NIC nearest to it.
type rank struct {
	node string
	gpu  int
	port topo.PortRef
}

func (r rank) String() string { return fmt.Sprintf("%s:gpu%d", r.node, r.gpu) }

// pairsOf joins a workload's NICs, requester first. Data of a write, send or atomic workload
// goes from requester to responder, of a read from responder to requester; an incast's
// data goes from From to To whatever the operation.
func pairsOf(s *Spec, t *topo.Topology) ([]pair, error) {
	from, err := selectNICs("from", s.From, t)
	if err != nil {
		return nil, err
	}
	if s.Kind == AllPairs {
		return crossed(from, from, "from")
	}
	if len(s.To) == 0 {
		return nil, strict.At("to", "a %s workload needs to: the responders' NICs", s.Kind)
	}
	to, err := selectNICs("to", s.To, t)
	if err != nil {
		return nil, err
	}
	if s.Kind == Incast {
		if len(to) != 1 {
			return nil, strict.At("to", "an incast goes to one NIC, this selects %d (%s, …)", len(to), portName(to[0]))
		}
		pairs, err := crossed(from, to, "from")
		if s.op() == OpRead {
			for i, p := range pairs {
				pairs[i] = pair{p.to, p.from}
			}
		}
		return pairs, err
	}
	pairing := s.Pairing
	if pairing == "" {
		switch {
		case len(from) == 1 || len(to) == 1:
			pairing = Cross
		case len(from) == len(to):
			pairing = Zip
		default:
			return nil, strict.At("pairing", "from selects %d NICs and to %d: say pairing: cross to join each with each", len(from), len(to))
		}
	}
	if pairing == Cross {
		return crossed(from, to, "to")
	}
	if len(from) != len(to) {
		return nil, strict.At("pairing", "zip needs as many NICs in from (%d) as in to (%d)", len(from), len(to))
	}
	pairs := make([]pair, len(from))
	for i := range from {
		if from[i].Node == to[i].Node {
			return nil, strict.At("to", "%s and %s are of one host: no traffic between them crosses the fabric", portName(from[i]), portName(to[i]))
		}
		pairs[i] = pair{from[i], to[i]}
	}
	return pairs, nil
}

// crossed joins each with each on another host.
func crossed(from, to []topo.PortRef, key string) ([]pair, error) {
	if n := len(from) * len(to); n > maxQueuePairs {
		return nil, strict.At(key, "%d NICs to %d NICs are %d pairs: one workload has at most %d queue pairs", len(from), len(to), n, maxQueuePairs)
	}
	var pairs []pair
	for _, f := range from {
		for _, t := range to {
			if f.Node != t.Node {
				pairs = append(pairs, pair{f, t})
			}
		}
	}
	if len(pairs) == 0 {
		return nil, strict.At(key, "selects no two NICs of different hosts")
	}
	return pairs, nil
}

// selectNICs lists hosts' ports in the order of the selectors, then of the topology, each once.
// No selector at all is every NIC.
func selectNICs(key string, selectors []string, t *topo.Topology) ([]topo.PortRef, error) {
	if len(selectors) == 0 {
		selectors = []string{"*"}
	}
	var out []topo.PortRef
	seen := map[topo.PortRef]bool{}
	for _, sel := range selectors {
		node, port, ok := strings.Cut(sel, ":")
		if !ok {
			port = "*"
		}
		if err := pattern(key, sel); err != nil {
			return nil, err
		}
		found := false
		for i := range t.Nodes {
			n := &t.Nodes[i]
			if n.Role != topo.Host || !matches(node, n.Name) {
				continue
			}
			for _, p := range n.Ports {
				ref := topo.PortRef{Node: n.Name, Port: p.Name}
				if !matches(port, p.Name) {
					continue
				}
				found = true
				if !seen[ref] {
					seen[ref] = true
					out = append(out, ref)
				}
			}
		}
		if !found {
			return nil, strict.At(key, "%q selects no host's NIC%s", sel, strict.DidYouMean(sel, nicNames(t, ok)))
		}
	}
	return out, nil
}

// ranksOf lists a collective's ranks in ring order.
func ranksOf(s *Spec, t *topo.Topology) ([]rank, error) {
	selectors := s.Ranks
	if len(selectors) == 0 {
		selectors = []string{"*"}
	}
	var out []rank
	seen := map[string]bool{}
	for _, sel := range selectors {
		node, gpu, ok := strings.Cut(sel, ":")
		if !ok {
			gpu = "*"
		}
		if err := pattern("ranks", sel); err != nil {
			return nil, err
		}
		found := false
		for i := range t.Nodes {
			n := &t.Nodes[i]
			if n.Role != topo.Host || !matches(node, n.Name) || len(n.Ports) == 0 {
				continue
			}
			for g := range n.GPUs {
				r := rank{n.Name, g, topo.PortRef{Node: n.Name, Port: n.Ports[g%len(n.Ports)].Name}}
				if !matches(gpu, "gpu"+itoa(g)) {
					continue
				}
				found = true
				if !seen[r.String()] {
					seen[r.String()] = true
					out = append(out, r)
				}
			}
		}
		if !found {
			return nil, strict.At("ranks", "%q selects no GPU%s", sel, strict.DidYouMean(sel, gpuNames(t, ok)))
		}
	}
	if len(out) < 2 {
		return nil, strict.At("ranks", "a collective needs two ranks at least, this is %d", len(out))
	}
	if len(out) > maxRanks {
		return nil, strict.At("ranks", "%d ranks are more than %d", len(out), maxRanks)
	}
	if elements := s.size(0) / 4; s.Kind == AllReduce && elements < len(out)*s.qps() {
		return nil, strict.At("size", "%d elements can't be shared by %d ranks and %d queue pairs", elements, len(out), s.qps())
	}
	if s.Kind == AllToAll && s.size(0)%(len(out)*4) != 0 {
		return nil, strict.At("size", "%v isn't a multiple of 4 bytes for each of %d ranks", topo.Bytes(s.size(0)), len(out))
	}
	return out, nil
}

// maxRanks keeps float32 sums exact: see element.
const maxRanks = 128

func pattern(key, sel string) error {
	if _, err := path.Match(sel, ""); err != nil || sel == "" {
		return strict.At(key, "%q is no selector (write \"h1\", \"h1:eth0\" or a glob such as \"h*:eth0\")", sel)
	}
	return nil
}

func matches(pattern, name string) bool {
	ok, err := path.Match(pattern, name)
	return err == nil && ok
}

func nicNames(t *topo.Topology, withPorts bool) []string {
	var out []string
	for i := range t.Nodes {
		n := &t.Nodes[i]
		if n.Role != topo.Host {
			continue
		}
		if !withPorts {
			out = append(out, n.Name)
			continue
		}
		for _, p := range n.Ports {
			out = append(out, n.Name+":"+p.Name)
		}
	}
	return out
}

func gpuNames(t *topo.Topology, withGPU bool) []string {
	var out []string
	for i := range t.Nodes {
		n := &t.Nodes[i]
		if n.Role != topo.Host || n.GPUs == 0 {
			continue
		}
		if !withGPU {
			out = append(out, n.Name)
			continue
		}
		for g := range n.GPUs {
			out = append(out, n.Name+":gpu"+itoa(g))
		}
	}
	return out
}
