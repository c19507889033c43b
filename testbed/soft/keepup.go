//go:build linux

package soft

import (
	"errors"
	"fmt"
	"time"

	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/testbed/fabric"
	"github.com/rocebed/rocebed/testbed/linux"
)

// How late a node may be: one timer in a hundred, and one frame in a hundred, by lateAllowed of fabric time, which is half
// of what DCQCN's timers are apart. A node does everything late that it does late, so where
// this is exceeded, rates and times are the machine's.
const (
	lateAllowed = 25 * time.Microsecond
	// Shares of a few say nothing.
	leastCounted = 100
)

// baseline is how the machine and the nodes were when judging began.
type baseline struct {
	softnet map[int]uint64
	nodes   map[string]nodeBaseline
}

type nodeBaseline struct {
	loop   loop.Stats
	late   []latenessCounts // by port
	unsent []uint64
	drops  []uint64
}

func (n *node) baseline() (b nodeBaseline, err error) {
	b.loop = n.loop.Stats()
	var errs []error
	for _, p := range n.ports {
		b.late = append(b.late, p.counts.late.read())
		b.unsent = append(b.unsent, p.counts.unsent.Load())
		d, err := p.sock.Drops()
		errs = append(errs, err)
		b.drops = append(b.drops, d)
	}
	return b, errors.Join(errs...)
}

// JudgeKeepUp makes KeepUp judge from now on.
func (f *Fabric) JudgeKeepUp() error {
	base := baseline{nodes: map[string]nodeBaseline{}}
	var errs []error
	for _, n := range f.nodes {
		b, err := n.baseline()
		base.nodes[n.name] = b
		errs = append(errs, err)
	}
	var err error
	if base.softnet, err = linux.SoftnetDrops(); err != nil {
		errs = append(errs, err)
	}
	for _, h := range f.away {
		if !h.answers() {
			continue
		}
		_, err := h.ask(background, asked{Do: "judge"})
		errs = append(errs, err)
	}
	f.mu.Lock()
	f.base = base
	f.mu.Unlock()
	return errors.Join(errs...)
}

// KeepUp says whether the machine has kept up since JudgeKeepUp. It has not when a frame found no room where
// it came in, when one could not be sent, or when a node was late (fabric.ErrSlow).
func (f *Fabric) KeepUp() error {
	f.mu.Lock()
	base := f.base
	f.mu.Unlock()
	var lost, slow []error
	for _, n := range f.nodes {
		now, err := n.baseline()
		was := base.nodes[n.name]
		lost = append(lost, err, n.keptUp(now, was))
		slow = append(slow, n.late(now, was))
	}
	for _, h := range f.away {
		switch late, err := h.keepUp(); {
		case late:
			slow = append(slow, err)
		default:
			lost = append(lost, err)
		}
	}
	if f.cfg.Within == nil { // else the rest of the fabric says what the machine has lost
		lost = append(lost, linux.NoSoftnetDropsSince(base.softnet))
	}
	late := errors.Join(slow...)
	if err := errors.Join(lost...); err != nil {
		return f.slower(errors.Join(err, late))
	}
	if late != nil {
		return fabric.OnlySlow(f.slower(late))
	}
	return nil
}

func (f *Fabric) slower(err error) error {
	return fmt.Errorf("the machine did not keep up (--dilation %d asks less of it, and so does a machine that does nothing else): %w", 2*uint64(f.cfg.Dilation.Factor()), err)
}

// keptUp says what the node lost.
func (n *node) keptUp(now, was nodeBaseline) error {
	var errs []error
	if err := n.failed.Load(); err != nil {
		errs = append(errs, fmt.Errorf("%s: %w", n.name, *err))
	}
	for i, p := range n.ports {
		if d := now.drops[i] - was.drops[i]; d > 0 {
			errs = append(errs, fmt.Errorf("%s: %d frames came in and found no room: the node was too slow to take them", p.ref, d))
		}
		if d := now.unsent[i] - was.unsent[i]; d > 0 {
			errs = append(errs, fmt.Errorf("%s: the kernel refused %d frames: the interface was down, or set to a smaller MTU", p.ref, d))
		}
	}
	return errors.Join(errs...)
}

// late says by how much the node was late, if by too much.
func (n *node) late(now, was nodeBaseline) error {
	allowed := n.dilation.Wall(lateAllowed)
	var errs []error
	timers := now.loop.Since(was.loop).Late
	if p := timers.Percentile(99); timers.Count >= leastCounted && p > allowed {
		errs = append(errs, fmt.Errorf("%s: 1 in 100 of its timers was more than %v late (wall time), %v is allowed", n.name, p, allowed))
	}
	for i, p := range n.ports {
		late, all := now.late[i].since(was.late[i]).beyond(allowed)
		if all >= leastCounted && late*100 > all {
			errs = append(errs, fmt.Errorf("%s: %d of %d frames were sent more than %v late (wall time)", p.ref, late, all, allowed))
		}
	}
	return errors.Join(errs...)
}
