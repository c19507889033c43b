package workloads

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/rocebed/rocebed/workloads/verbs"
)

func TestAFailedQueuePairEndsItsFlowAndSaysWhichStatus(t *testing.T) {
	for _, s := range []string{"kind: write", "kind: read", "kind: send", "kind: atomic, size: 8B", "kind: write, signaling: selective, depth: 8"} {
		b := newBench(t, 2, 1, 1)
		n := 0
		b.net.meddle = func(m *memMsg) {
			if n++; n == 20 {
				m.drop = true
			}
		}
		spec := "name: w, " + s + ", from: [h1], to: [h2], messages: 100"
		res := b.run("[{" + spec + "}]").Results[0]
		if res.Passed || len(res.Statuses) != 1 || res.Statuses[0] != "RETRY_EXC_ERR" || !strings.Contains(res.Failure, "h1:eth0") {
			t.Errorf("%s: passed %v, statuses %v, failure %q", s, res.Passed, res.Statuses, res.Failure)
		}
		if res.Errors == 0 || res.Messages > 19 || res.VerifiedBytes > res.Bytes {
			t.Errorf("%s: %d errors, %d messages, %d of %d bytes verified", s, res.Errors, res.Messages, res.VerifiedBytes, res.Bytes)
		}
		n = 0
		if res := b.run("[{" + spec + ", expect_error: retry-exceeded}]").Results[0]; !res.Passed {
			t.Errorf("%s, expecting the error: %s", s, res.Failure)
		}
		n = 0
		if res := b.run("[{" + spec + ", expect_error: remote-access}]").Results[0]; res.Passed || !strings.Contains(res.Failure, "RETRY_EXC_ERR") {
			t.Errorf("%s, expecting another error: passed %v, failure %q", s, res.Passed, res.Failure)
		}
	}
}

func TestAnExpectedErrorThatDoesNotComeFails(t *testing.T) {
	res := newBench(t, 2, 1, 1).run("[{name: w, kind: write, from: [h1], to: [h2], messages: 3, expect_error: retry-exceeded}]").Results[0]
	if res.Passed || !strings.Contains(res.Failure, "expected a queue pair to end with RETRY_EXC_ERR, but none failed") {
		t.Errorf("passed %v, failure %q", res.Passed, res.Failure)
	}
}

func TestReceivesThatComeTooLateExhaustTheRNRRetries(t *testing.T) {
	b := newBench(t, 2, 1, 1)
	res := b.run("[{name: w, kind: send, from: [h1], to: [h2], messages: 10, receive_delay: 200ms, expect_error: rnr-retry-exceeded, qp: {rnr_retry: 2}}]").Results[0]
	if !res.Passed {
		t.Error(res.Failure)
	}
	res = b.pass("[{name: w, kind: send, from: [h1], to: [h2], messages: 10, receive_delay: 20ms}]")
	if res.VerifiedBytes != 10*65536 || res.Duration < 20*time.Millisecond {
		t.Errorf("%d bytes verified in %v; want all, after the receives came", res.VerifiedBytes, res.Duration)
	}
}

func TestARemoteErrorLeavesTheOtherFlowsAlone(t *testing.T) {
	b := newBench(t, 3, 1, 1)
	b.net.meddle = func(m *memMsg) {
		if m.from.d == b.devs[0] {
			m.status = verbs.RemAccessErr
		}
	}
	res := b.run("[{name: w, kind: incast, from: [h1, h2], to: [h3], size: 4KiB, messages: 50}]").Results[0]
	if res.Passed || res.Flows[0].Status != "REM_ACCESS_ERR" || res.Flows[1].Status != "" || res.Flows[1].VerifiedBytes != 50*4096 {
		t.Errorf("passed %v, statuses %q and %q, the second verified %d bytes", res.Passed, res.Flows[0].Status, res.Flows[1].Status, res.Flows[1].VerifiedBytes)
	}
}

// Nothing that never happens may make the engine wait for ever, and it says what it waited for.
func TestAStillFlowIsGivenUpAndSaysWhatItWaitedFor(t *testing.T) {
	for kind, want := range map[string]string{
		"kind: write, from: [h1], to: [h2]": "nothing moved for 100ms while waiting for the completion of message 9",
		"kind: all-reduce, size: 64KiB":     "nothing moved for 100ms while waiting for unit",
	} {
		b := newBench(t, 2, 1, 1)
		b.cfg.ControlTimeout = 200 * time.Millisecond
		b.net.meddle = func(m *memMsg) {
			if m.wr.ID >= 9 && m.wr.ID != drainID || kind[6] == 'a' {
				m.finish = func(verbs.Status, []byte) {} // neither completed nor failed
				m.status = verbs.FatalErr
			}
		}
		res := b.run("[{name: w, " + kind + ", messages: 20, stall_timeout: 100ms}]").Results[0]
		if res.Passed || !strings.Contains(res.Failure, want) {
			t.Errorf("%s: failure %q, want %q", kind, res.Failure, want)
		}
	}
}

func TestASetUpThatFailsNamesTheCallAndLeavesNothing(t *testing.T) {
	for _, kind := range []string{"kind: write, from: [h1], to: [h2]", "kind: all-reduce"} {
		b := newBench(t, 2, 1, 1)
		b.devs[1].refuseQP = errors.New("no more queue pairs")
		r := b.run("[{name: w, " + kind + ", messages: 20}, {name: after, kind: write, from: [h1], to: [h2], messages: 1, after: w}]")
		if res := r.Results[0]; res.Passed || !strings.Contains(res.Failure, "h2:eth0") || !strings.Contains(res.Failure, "create qp: no more queue pairs") {
			t.Errorf("%s: passed %v, failure %q", kind, res.Passed, res.Failure)
		}
		if res := r.Results[1]; res.Passed {
			t.Errorf("%s: the workload behind it passed without queue pairs", kind)
		}
	}
}

func TestStopLetsWhatIsOutstandingComplete(t *testing.T) {
	for _, kind := range []string{
		"kind: write, from: [h1], to: [h2]", "kind: read, from: [h1], to: [h2]", "kind: send, transport: ud, from: [h1], to: [h2]",
		"kind: write, signaling: selective, from: [h1], to: [h2]", "kind: all-reduce, size: 64KiB",
	} {
		b := newBench(t, 2, 1, 1)
		flowing := make(chan struct{})
		n := 0
		b.net.meddle = func(*memMsg) {
			b.mu.Lock()
			if n++; n == 50 {
				close(flowing)
			}
			b.mu.Unlock()
		}
		e, done := b.start("[{name: w, " + kind + ", duration: 1000s}, {name: next, kind: write, from: [h2], to: [h1], messages: 1, after: w}]")
		<-flowing
		e.Stop(t.Context())
		r := b.wait(done)
		if res := r.Results[0]; !res.Passed || !res.Stopped || res.Bytes == 0 || res.VerifiedBytes != res.Bytes {
			t.Errorf("%s: passed %v, stopped %v, %d of %d bytes verified, %s", kind, res.Passed, res.Stopped, res.VerifiedBytes, res.Bytes, res.Failure)
		}
		if next := r.Results[1]; !next.Stopped || next.Passed || next.Bytes != 0 || !strings.Contains(next.Failure, "never ran: stopped while it waited for workload w") {
			t.Errorf("%s: the workload behind it: stopped %v, passed %v, %d bytes, failure %q", kind, next.Stopped, next.Passed, next.Bytes, next.Failure)
		}
	}
}

func TestStopBeforeTheStartEndsAtOnce(t *testing.T) {
	b := newBench(t, 2, 1, 1)
	e, done := b.start("[{name: w, kind: write, from: [h1], to: [h2], messages: 1, start: 1000s}, {name: v, kind: all-reduce, messages: 1, start: 1000s}]")
	e.Stop(t.Context())
	for _, res := range b.wait(done).Results {
		if !res.Stopped || res.Passed || res.Bytes != 0 || !strings.Contains(res.Failure, "never ran: stopped before its start") {
			t.Errorf("%s: stopped %v, passed %v with %d bytes, failure %q", res.Name, res.Stopped, res.Passed, res.Bytes, res.Failure)
		}
	}
}

// Whoever starts the engine may do so by way of another loop, and be overtaken by whoever stops it.
func TestStopBeforeTheEngineStartsIsNotForgotten(t *testing.T) {
	b := newBench(t, 2, 1, 1)
	e, err := NewEngine(b.cfg, specs(t, "[{name: w, kind: write, from: [h1], to: [h2], duration: 1000s}, {name: v, kind: all-reduce, duration: 1000s}]"))
	if err != nil {
		t.Fatal(err)
	}
	e.Stop(t.Context())
	done := make(chan *Report, 1)
	e.Start(func(r *Report) { done <- r })
	for _, res := range b.wait(done).Results {
		if !res.Stopped || res.Passed || res.Bytes != 0 {
			t.Errorf("%s: stopped %v, passed %v with %d bytes, failure %q", res.Name, res.Stopped, res.Passed, res.Bytes, res.Failure)
		}
	}
}

// A workload that can't wind down is broken off when the context ends.
func TestStopBreaksOffWhatDoesNotWindDown(t *testing.T) {
	for _, kind := range []string{"kind: write, from: [h1], to: [h2]", "kind: all-reduce, size: 64KiB"} {
		b := newBench(t, 2, 1, 1)
		stuck := make(chan struct{})
		n := 0
		b.net.meddle = func(m *memMsg) {
			m.finish = func(verbs.Status, []byte) {}
			m.status = verbs.FatalErr
			b.mu.Lock()
			if n++; n == 1 {
				close(stuck)
			}
			b.mu.Unlock()
		}
		e, done := b.start("[{name: w, " + kind + ", duration: 1000s, stall_timeout: 1000s}]")
		<-stuck
		ctx, cancel := context.WithCancel(t.Context())
		e.Stop(ctx)
		cancel()
		if res := b.wait(done).Results[0]; res.Passed || !strings.Contains(res.Failure, "stopped before it had wound down") {
			t.Errorf("%s: passed %v, failure %q", kind, res.Passed, res.Failure)
		}
	}
}
