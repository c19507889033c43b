//go:build linux

package kernel

import (
	"context"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/rocebed/rocebed/testbed/fabric"
	"github.com/rocebed/rocebed/testbed/kernel/engine"
	"github.com/rocebed/rocebed/topo"
)

// lossless are switches whose priority 3 is, with little before they pause.
func lossless() fabric.SwitchSettings {
	xon := topo.Bytes(20_000)
	return fabric.SwitchSettings{SwitchModel: fabric.SwitchModel{PFC: &fabric.PFCSettings{XOFF: 100_000, XON: &xon}}}
}

// Two senders, one receiver: what the switch has no room for it asks to wait, and pauses are counted alike on both ends.
func TestAFabricWithPausesLosesNothing(t *testing.T) {
	f := build(t, star(3, 10*topo.Gbps, time.Microsecond), Config{Dilation: 1024, Switches: lossless()})
	if f.engine == nil {
		t.Fatal("the fabric has no port engine")
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		both := make(chan struct{})
		go func() { defer close(both); write(t, f, "h2", "h3", 1<<17, 4, 8, patient) }()
		write(t, f, "h1", "h3", 1<<17, 4, 8, patient)
		<-both
	}()
	if sendsInAPause(t, f, topo.PortRef{Node: "h1", Port: "eth0"}, done) {
		t.Error("h1 sent while it was paused")
	}
	<-done
	all := collect(t, f)
	for _, h := range []string{"h1", "h2"} {
		port := map[string]string{"h1": "eth0", "h2": "eth1"}[h]
		sent, got := all.of(t, "tx_prio_pause", "leaf1", port, "3"), all.of(t, "rx_prio_pause", h, "eth0", "3")
		if sent == 0 || sent != got {
			t.Errorf("leaf1:%s sent %v pause frames and %s took %v", port, sent, h, got)
		}
		if n := all.of(t, "completer_retry_err", h, "eth0"); n != 0 {
			t.Errorf("%s sent again %v times", h, n)
		}
		if n := all.of(t, "headroom_drops", "leaf1", port, "3"); n != 0 {
			t.Errorf("leaf1:%s dropped %v frames for want of headroom", port, n)
		}
		if p := all.of(t, "rx_prio_pause_duration", h, "eth0", "3"); p == 0 {
			t.Errorf("%s was never silent", h)
		}
	}
	if m, err := f.engine.Memory(slices.Index(f.Topology().NodeNames(), "leaf1")); err != nil || m.Total != 0 || m.Used != 0 {
		t.Errorf("nothing waits, and the memory is %+v, %v", m, err)
	}
}

// An agent that is killed is missed at once, and what was paused runs on.
func TestAFabricWhoseAgentDiesRunsOnUnpaused(t *testing.T) {
	f := build(t, star(3, 10*topo.Gbps, time.Microsecond), Config{Dilation: 1024, Switches: lossless()})
	at := time.Now()
	if err := syscall.Kill(f.agent.PID(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	select {
	case <-f.Broken():
	case <-time.After(30 * time.Second):
		t.Fatal("nobody noticed")
	}
	t.Logf("noticed after %v", time.Since(at))
	if f.Cause() == nil || f.KeepUp() == nil {
		t.Errorf("the agent is dead: cause %v, kept up %v", f.Cause(), f.KeepUp())
	}
	// Pauses come still, from the switch's own programs, and nobody ends them: a host sends all the same while it is paused, which it never
	// does while the agent lives. Headroom may run out then, and a message's last packet with it.
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		for range 4 {
			both := make(chan struct{})
			go func() { defer close(both); write(t, f, "h2", "h3", 1<<17, 4, 4, hasty) }()
			write(t, f, "h1", "h3", 1<<17, 4, 4, hasty)
			<-both
		}
	}()
	if !sendsInAPause(t, f, topo.PortRef{Node: "h1", Port: "eth0"}, sent) {
		t.Error("h1 was not seen to send while it was paused")
	}
	<-sent
}

// sendsInAPause says whether a port sends more than the frame on its line within one pause, until over is closed.
func sendsInAPause(t *testing.T, f *Fabric, ref topo.PortRef, over <-chan struct{}) bool {
	t.Helper()
	var first engine.QueueReading
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-over:
			return false
		case <-tick.C:
		}
		r, err := f.engine.Read(f.numbers[ref])
		if err != nil {
			t.Error(err)
			return false
		}
		switch q := r.Queues[3]; {
		case !q.Paused || q.PausedSince != first.PausedSince:
			first = q
		case q.TxFrames > first.TxFrames+2:
			return true
		}
	}
}

// A fabric that is closed leaves no agent.
func TestAnEngineGoesWithItsFabric(t *testing.T) {
	f := build(t, star(2, 10*topo.Gbps, time.Microsecond), Config{Dilation: 1024, Switches: lossless()})
	pid := f.agent.PID()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := f.Close(ctx); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, 0); err == nil {
		t.Errorf("the agent, process %d, lives on", pid)
	}
}
