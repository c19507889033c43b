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
	"github.com/rocebed/rocebed/testbed/mixed"
	"github.com/rocebed/rocebed/testbed/report"
	"github.com/rocebed/rocebed/testbed/soft"
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
// dilation at which every NIC of the scenario could send at line rate at once, and at which pauses are obeyed in time.
func calibrate(ctx context.Context, s *Scenario) (loop.Dilation, string, error) {
	k := kernelConfig(s, 1)
	d, why, err := calibrateOn(ctx, s, buildKernel, k.LeastDilation())
	if err != nil || !mixed.Wanted(s.Topology) {
		return d, why, err
	}
	return calibrateOn(ctx, s, buildSoftAmongTheKernels, max(d, soft.LeastDilation)) // and it is no less than rxe-hosts need
}

// buildSoftAmongTheKernels is buildKernel with soft-hosts.
func buildSoftAmongTheKernels(ctx context.Context, cfg BuildConfig) (fabric.Fabric, error) {
	for i := range cfg.Scenario.Topology.Nodes {
		if n := &cfg.Scenario.Topology.Nodes[i]; n.Role == topo.Host {
			n.Kind = topo.SoftHost
		}
	}
	return buildKernel(ctx, cfg)
}

// calibrateOn is calibrate for a way to build fabrics, and finds none below least.
func calibrateOn(ctx context.Context, s *Scenario, build buildFunc, least loop.Dilation) (loop.Dilation, string, error) {
	capacity, _, err := trial(ctx, build, 2, calibrateRate, calibrateDilation)
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

// mostDoublings is how often inTime doubles a dilation, mostTrialHosts how many hosts it tries with.
const (
	mostDoublings  = 5
	mostTrialHosts = 4
)

// inTime doubles a dilation until a few of the scenario's hosts, at its fastest NIC's rate, are served in time: what carries the
// traffic may still wait too long for a processor, on a machine that does other things.
func inTime(ctx context.Context, s *Scenario, build buildFunc, d loop.Dilation) (loop.Dilation, error) {
	nics := s.Plan.Topology.NICs()
	rate := topo.Rate(0)
	for _, nic := range nics {
		rate = max(rate, s.Plan.Link(nic).Rate)
	}
	for range mostDoublings {
		_, slow, err := trial(ctx, build, min(len(s.Plan.Topology.Hosts()), mostTrialHosts), rate, d)
		if err != nil {
			return 0, fmt.Errorf("calibration: %w", err)
		}
		if !slow {
			break
		}
		d *= 2
	}
	return d, nil
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

// trial has hosts on one switch write to each other. It returns how many bits per second of wall time the machine moved over
// links, summed over links, and whether it was too slow for the dilation.
func trial(ctx context.Context, build buildFunc, hosts int, rate topo.Rate, d loop.Dilation) (total float64, slow bool, err error) {
	spec := topo.Spec{Star: &topo.Star{Hosts: max(hosts, 2)}, LinkSettings: topo.LinkSettings{Rate: rate}}
	t, err := spec.Build()
	if err != nil {
		return 0, false, err
	}
	plan, err := t.Plan(topo.PlanOptions{})
	if err != nil {
		return 0, false, err
	}
	s := &Scenario{Name: "calibration", Seed: 1, Topology: t, Plan: plan}
	fab, err := build(ctx, BuildConfig{
		Testbed: fmt.Sprintf("calibration-%d", os.Getpid()), Scenario: s, Seed: 1, Dilation: d, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return 0, false, err
	}
	defer func() {
		down, cancel := context.WithTimeout(context.WithoutCancel(ctx), teardownDeadline)
		defer cancel()
		err = errors.Join(err, fab.Close(down))
	}()
	no, patient := false, 20 // of the local ACK timeout: what a busy machine makes wait isn't lost
	nics := t.NICs()
	for i, from := range nics {
		to := nics[(i+1)%len(nics)]
		s.Workloads = append(s.Workloads, workloads.Spec{
			Name: from.Node, Kind: workloads.Write, From: []string{from.Node}, To: []string{to.Node}, Size: 64 << 10,
			Duration: d.Fabric(calibrateFor), Verify: &no, QP: workloads.QPSpec{Timeout: &patient},
		})
	}
	engine, err := workloads.NewEngine(engineConfig(fab, s, nil), s.Workloads)
	if err != nil {
		return 0, false, err
	}
	reports := make(chan *workloads.Report, 1)
	engine.Start(func(r *workloads.Report) { reports <- r })
	var done *workloads.Report
	select {
	case done = <-reports:
	case <-ctx.Done():
		engine.Stop(ctx)
		<-reports
		return 0, false, ctx.Err()
	}
	if !done.Passed() {
		return 0, false, errors.Join(done.Err, errors.New("its own traffic failed"))
	}
	for _, w := range done.Results {
		total += w.GoodputBps * 2 / float64(d.Factor()) // two links; wall time
	}
	return total, errors.Is(fab.KeepUp(), fabric.ErrSlow), nil
}
