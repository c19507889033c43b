package testbed

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/testbed/fabric"
	"github.com/rocebed/rocebed/testbed/report"
	"github.com/rocebed/rocebed/topo"
	"github.com/rocebed/rocebed/workloads"
)

// The calibration fabric: two hosts on one switch, with links that don't limit, writing to each
// other for calibrateFor of wall time.
const (
	calibrateDilation = 8
	calibrateFor      = 400 * time.Millisecond
	calibrateRate     = 400 * topo.Gbps
)

type buildFunc func(context.Context, BuildConfig) (fabric.Fabric, error)

// sustained is the share of the measured total that a scenario may ask for: beyond it timers
// are served late, and a few hosts together cost more than two do.
const sustained = 0.5

// calibrate measures what this machine carries in all, link by link, and finds the smallest
// dilation at which every NIC of the scenario could send at line rate at once.
func calibrate(ctx context.Context, s *Scenario) (loop.Dilation, string, error) {
	return calibrateOn(ctx, s, buildKernel, 1)
}

// calibrateOn is calibrate for a way to build fabrics, and finds none below least.
func calibrateOn(ctx context.Context, s *Scenario, build buildFunc, least loop.Dilation) (loop.Dilation, string, error) {
	capacity, err := measure(ctx, build)
	if err != nil {
		return 0, "", fmt.Errorf("calibration: %w", err)
	}
	demand := demand(s.Plan)
	d := least
	for float64(d.Factor())*capacity*sustained < demand && d < 1<<31 {
		d *= 2
	}
	return d, fmt.Sprintf("this machine carries %v over all links, the scenario can ask for %v", report.Rate(int64(capacity)), report.Rate(int64(demand))), nil
}

// maxPaths bounds what demand looks at between two NICs.
const maxPaths = 1 << 12

// demand is what the links carry when every NIC sends at line rate, in bits per second of
// fabric time: each NIC's rate times the links on its way to the farthest NIC.
func demand(p *topo.Plan) float64 {
	nics := p.Topology.NICs()
	total := 0.0
	for i, nic := range nics {
		longest := 1
		for j := 0; j < len(nics); j += max(1, len(nics)/8) { // a sample: shapes are regular
			if n, err := p.PathCount(nic, nics[j]); j == i || err != nil || n == 0 || n > maxPaths {
				continue
			}
			if paths, err := p.Paths(nic, nics[j]); err == nil && len(paths) > 0 {
				longest = max(longest, len(paths[0]))
			}
		}
		total += float64(p.Link(nic).Rate) * float64(longest)
	}
	return total
}

// measure is how many bits per second of wall time this machine moves over links, summed over
// links.
func measure(ctx context.Context, build buildFunc) (total float64, err error) {
	spec := topo.Spec{Star: &topo.Star{Hosts: 2}, LinkSettings: topo.LinkSettings{Rate: calibrateRate}}
	t, err := spec.Build()
	if err != nil {
		return 0, err
	}
	plan, err := t.Plan(topo.PlanOptions{})
	if err != nil {
		return 0, err
	}
	s := &Scenario{Name: "calibration", Seed: 1, Topology: t, Plan: plan}
	fab, err := build(ctx, BuildConfig{
		Testbed: fmt.Sprintf("calibration-%d", os.Getpid()), Scenario: s, Seed: 1, Dilation: calibrateDilation, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return 0, err
	}
	defer func() {
		down, cancel := context.WithTimeout(context.WithoutCancel(ctx), teardownDeadline)
		defer cancel()
		err = errors.Join(err, fab.Close(down))
	}()
	no := false
	write := func(from, to topo.PortRef) workloads.Spec {
		return workloads.Spec{
			Name: from.Node, Kind: workloads.Write, From: []string{from.Node}, To: []string{to.Node}, Size: 64 << 10,
			Duration: loop.Dilation(calibrateDilation).Fabric(calibrateFor), Verify: &no,
		}
	}
	nics := t.NICs()
	s.Workloads = []workloads.Spec{write(nics[0], nics[1]), write(nics[1], nics[0])}
	engine, err := workloads.NewEngine(engineConfig(fab, s, nil), s.Workloads)
	if err != nil {
		return 0, err
	}
	reports := make(chan *workloads.Report, 1)
	engine.Start(func(r *workloads.Report) { reports <- r })
	var done *workloads.Report
	select {
	case done = <-reports:
	case <-ctx.Done():
		engine.Stop(ctx)
		<-reports
		return 0, ctx.Err()
	}
	if !done.Passed() {
		return 0, errors.Join(done.Err, errors.New("its own traffic failed"))
	}
	for _, w := range done.Results {
		total += w.GoodputBps * 2 / calibrateDilation // two links; wall time
	}
	return total, nil
}
