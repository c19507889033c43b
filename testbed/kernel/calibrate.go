//go:build linux

package kernel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/bits"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/testbed/linux"
	"github.com/rocebed/rocebed/topo"
)

const (
	calibrationTime  = 600 * time.Millisecond
	calibrationSize  = 64 << 10
	calibrationDepth = 8
	// share of the measured total that a fabric may ask for: traffic of many flows costs more
	// than that of one, and the workload's own checks cost too.
	sustainedShare = 0.7
)

// Calibrate is the smallest dilation at which this machine carries the plan's links when all are
// busy, and how that was found. The measurement is a short transfer between two hosts across one
// switch; it is kept for as long as the machine is up.
func Calibrate(ctx context.Context, p *topo.Plan) (loop.Dilation, string, error) {
	mtu := 0
	for i := range p.Topology.Links {
		mtu = max(mtu, p.Topology.Links[i].MTU)
	}
	total, err := machineTotal(ctx, mtu)
	if err != nil {
		return 0, "", fmt.Errorf("measure what this machine carries: %w", err)
	}
	d, why := sustained(p, total)
	return d, why, nil
}

// sustained is the smallest power of two by which the plan's demand fits a share of total, the
// bits per second that the machine moves over links, summed over links.
func sustained(p *topo.Plan, total topo.Rate) (loop.Dilation, string) {
	want := demand(p)
	least := float64(want) / (sustainedShare * float64(total))
	d := loop.Dilation(1)
	if least > 1 {
		d = loop.Dilation(1) << min(bits.Len64(uint64(least-1e-9)), 31)
	}
	return d, fmt.Sprintf("busy, the fabric's links carry %s in all, and this machine moves %s over links", gbps(want), gbps(total))
}

func gbps(r topo.Rate) string { return fmt.Sprintf("%.3gGbps", float64(r)/1e9) }

// demand is what all links carry at most: every direction of every link at its rate, or every
// NIC sending at its rate over the longest path there is, whichever is less.
func demand(p *topo.Plan) topo.Rate {
	var links, nics topo.Rate
	for i := range p.Topology.Links {
		links += 2 * p.Topology.Links[i].Rate
	}
	refs := p.Topology.NICs()
	hops := 0
	for _, ref := range refs {
		nics += p.Link(ref).Rate
		if paths, err := p.Paths(refs[0], ref); err == nil && len(paths) > 0 {
			hops = max(hops, len(paths[0].Nodes())-1)
		}
	}
	return min(links, nics*topo.Rate(max(hops, 1)))
}

// measurement is a calibration's result and what it holds for.
type measurement struct {
	Boot  string    `json:"boot"` // this boot of this machine
	MTU   int       `json:"mtu"`
	Total topo.Rate `json:"total"`
}

func machineTotal(ctx context.Context, mtu int) (topo.Rate, error) {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return 0, err
	}
	m := measurement{Boot: strings.TrimSpace(string(boot)), MTU: mtu}
	path := filepath.Join(cacheDir(), "calibration.json")
	if b, err := os.ReadFile(path); err == nil {
		var known measurement
		if json.Unmarshal(b, &known) == nil && known.Boot == m.Boot && known.MTU == m.MTU && known.Total > 0 {
			return known.Total, nil
		}
	}
	if m.Total, err = measure(ctx, mtu); err != nil {
		return 0, err
	}
	// Not being able to keep it only costs the next run a second.
	if b, err := json.Marshal(m); err == nil && os.MkdirAll(filepath.Dir(path), 0o755) == nil {
		_ = os.WriteFile(path, b, 0o644)
	}
	return m.Total, nil
}

func cacheDir() string {
	if dir := os.Getenv("ROCEBED_CACHE"); dir != "" {
		return dir
	}
	return "/var/cache/rocebed"
}

// measure runs a transfer at full speed: links that limit nothing, a delay that makes packets
// take the way that they take in a fabric.
//
//	h1 ── leaf1 ── h2
func measure(ctx context.Context, mtu int) (_ topo.Rate, err error) {
	delay := 100 * time.Microsecond
	spec := topo.Spec{Star: &topo.Star{Hosts: 2}, LinkSettings: topo.LinkSettings{Rate: 100 * topo.Gbps, Delay: &delay, MTU: mtu}}
	top, err := spec.Build()
	if err != nil {
		return 0, err
	}
	plan, err := top.Plan(topo.PlanOptions{})
	if err != nil {
		return 0, err
	}
	bed, err := linux.Acquire(ctx, fmt.Sprintf("calibrate-%d", os.Getpid()))
	if err != nil {
		return 0, err
	}
	f, err := Build(ctx, Config{Testbed: bed, Plan: plan, Dilation: 1, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return 0, err
	}
	defer func() {
		down, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		err = errors.Join(err, f.Close(down))
	}()
	const timeout, retries = 18, 6 // a second: nothing is lost here
	x, err := newTransfer(ctx, f.hosts[0], f.hosts[1], calibrationSize, calibrationDepth, timeout, retries)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, x.close(context.WithoutCancel(ctx))) }()
	n, took, err := x.run(ctx, 0, calibrationTime)
	if err != nil {
		return 0, err
	}
	const links = 2 // between the hosts
	return topo.Rate(float64(n) * calibrationSize * 8 * links / took.Seconds()), nil
}
