//go:build linux

package tc

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rocebed/rocebed/testbed/kernel/nl"
)

// kernelOf plays the kernel that took these messages: it reports what was asked for.
func kernelOf(t *testing.T, want []Object) []Report {
	t.Helper()
	var have []Report
	for _, o := range want {
		var b nl.Batch
		AppendOp(&b, 100, Op{Add, o}, "x")
		_, r, ok := parse(b.Bytes()[unix.SizeofNlMsghdr:], o.Class)
		if !ok {
			t.Fatalf("%v: not parsed", o)
		}
		have = append(have, r)
	}
	return have
}

func variants() map[string]Port {
	base := port()
	with := func(change func(*Port)) Port {
		p := base
		p.Priorities = slices.Clone(base.Priorities)
		change(&p)
		return p
	}
	return map[string]Port{
		"base":     base,
		"slower":   with(func(p *Port) { p.Rate /= 4 }),
		"fast":     with(func(p *Port) { p.Rate = 400e9 }),
		"smaller":  with(func(p *Port) { p.Priorities[0].Limit = 100000 }),
		"unmarked": with(func(p *Port) { p.Priorities[0].Marker = nil }),
		"eager":    with(func(p *Port) { p.Priorities[0].Marker = &Marker{Kmin: 1000, Kmax: 2000, Pmax: 1} }),
		"two":      with(func(p *Port) { p.Priorities = append(p.Priorities, Priority{Limit: 50000}) }),
	}
}

// From any declaration to any other: a tree that already is right needs nothing, one of the same
// shape is changed in place, and one of another shape is built anew.
func TestTheDifferenceLeadsFromAnyDeclarationToAnyOther(t *testing.T) {
	shape := func(p Port) (s []uint32) {
		for _, o := range p.Tree() {
			s = append(s, o.ID)
		}
		return s
	}
	for from, a := range variants() {
		have := kernelOf(t, a.Tree())
		for to, b := range variants() {
			ops := Diff(have, b.Tree())
			switch {
			case from == to && len(ops) > 0:
				t.Errorf("%s: nothing changed and %v is done", from, ops)
			case from != to && len(ops) == 0:
				t.Errorf("%s to %s: nothing is done", from, to)
			case from != to && slices.Equal(shape(a), shape(b)):
				if slices.ContainsFunc(ops, func(o Op) bool { return o.Verb != Change }) {
					t.Errorf("%s to %s: the tree is not changed in place: %v", from, to, ops)
				}
			case from != to:
				if ops[0].Verb != Delete || len(ops) != 1+len(b.Tree()) {
					t.Errorf("%s to %s: the tree is not built anew: %v", from, to, ops)
				}
			}
			if err := Verify(have, b.Tree()); (err == nil) != (from == to) {
				t.Errorf("%s verified as %s: %v", from, to, err)
			}
		}
		if ops := Diff(have, nil); len(ops) != 1 || ops[0].Verb != Delete {
			t.Errorf("%s: taken away by %v", from, ops)
		}
	}
}

func TestVerifyNamesWhatDiffers(t *testing.T) {
	netem := func(q Netem) []Object { return []Object{{ID: 1 << 16, Parent: Root, Spec: q}} }
	q := Netem{Delay: 5 * time.Millisecond, Jitter: time.Millisecond}
	for word, have := range map[string][]Report{
		"delay":   kernelOf(t, netem(Netem{Delay: 6 * time.Millisecond, Jitter: time.Millisecond})),
		"jitter":  kernelOf(t, netem(Netem{Delay: 5 * time.Millisecond})),
		"missing": nil,
		"nothing asks for it": append(kernelOf(t, netem(q)),
			Report{Object: Object{ID: 7 << 16, Parent: 1<<16 | 1, Spec: unknown{"pfifo"}}}),
	} {
		if err := Verify(have, netem(q)); err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("expected %q, got %v", word, err)
		}
	}
	if err := Verify(kernelOf(t, netem(q)), netem(q)); err != nil {
		t.Error(err)
	}
}

// A frame is charged with what Ethernet puts around it: 4096 bytes of payload in a frame of 4158
// take 4182 bytes of line.
func TestTheShaperIsTheLineRateAndHoldsTwoFrames(t *testing.T) {
	for name, p := range variants() {
		for _, o := range p.Tree() {
			c, ok := o.Spec.(HTBClass)
			if !ok {
				continue
			}
			if c.Ceil != uint64(p.Rate)/8 || c.Overhead != 24 || c.Minimum != 84 {
				t.Errorf("%s: %+v", name, c)
			}
			if c.Burst < 2*(4200+14+24) {
				t.Errorf("%s: a burst of %d bytes holds no two frames", name, c.Burst)
			}
		}
	}
}

func TestDistributionsHaveMeanZeroAndDeviationOne(t *testing.T) {
	for _, name := range Distributions {
		table := DistributionTable(name)
		var sum, squares float64
		for i, v := range table {
			x := float64(v) / distributionScale
			sum += x
			squares += x * x
			if i > 0 && v < table[i-1] {
				t.Fatalf("%s: entry %d is below the one before", name, i)
			}
		}
		n := float64(len(table))
		mean, deviation := sum/n, math.Sqrt(squares/n-sum*sum/n/n)
		// Pareto's tail is cut at 4 standard deviations, and a mixture at equal quantiles has
		// less deviation than 1.
		if math.Abs(mean) > 0.05 || deviation < 0.7 || deviation > 1.02 {
			t.Errorf("%s: mean %.3f, deviation %.3f", name, mean, deviation)
		}
	}
	if DistributionTable("uniform") != nil || DistributionTable("") != nil {
		t.Error("uniform has a table")
	}
}

func TestSenselessPortsAreRefused(t *testing.T) {
	for reason, change := range map[string]func(*Port){
		"rate":       func(p *Port) { p.Rate = 100 },
		"priorities": func(p *Port) { p.Priorities = nil },
		"MTU":        func(p *Port) { p.MTU = 10 },
		"queue":      func(p *Port) { p.Priorities = []Priority{{Limit: 1000}} },
		"marker":     func(p *Port) { p.Priorities = []Priority{{Limit: 1e6, Marker: &Marker{Kmin: 9, Kmax: 3, Pmax: 1}}} },
	} {
		p := port()
		change(&p)
		if err := p.Check(); err == nil || !strings.Contains(err.Error(), reason) {
			t.Errorf("expected %q, got %v", reason, err)
		}
	}
	if err := port().Check(); err != nil {
		t.Error(err)
	}
}

func FuzzWhatTheKernelSaysIsParsedOrIgnored(f *testing.F) {
	var b nl.Batch
	for _, o := range port().Tree() {
		AppendOp(&b, 1, Op{Add, o}, "x")
	}
	f.Add(b.Bytes()[16:])
	f.Fuzz(func(_ *testing.T, p []byte) {
		for _, class := range []bool{false, true} {
			if _, r, ok := parse(p, class); ok {
				_ = r.String()
				_ = Verify([]Report{r}, port().Tree())
			}
		}
	})
}
