//go:build linux

package kernel

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/internal/testleak"
	"github.com/rocebed/rocebed/testbed/fabric"
	"github.com/rocebed/rocebed/topo"
	"github.com/rocebed/rocebed/workloads/verbs"
	"github.com/rocebed/rocebed/workloads/verbs/ibv"
)

// programEnv makes this test binary a program that connects a QP of a device to itself and
// prints what the kernel then says of the QP.
const programEnv = "ROCEBED_TEST_PROGRAM_ON"

func TestMain(m *testing.M) {
	AgentIfAsked()
	if device := os.Getenv(programEnv); device != "" {
		if err := program(device); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	testleak.Main(m)
}

const (
	programTimeout = 8
	programRNR     = 12 // 0.64 ms
)

// program asks for a local ACK timeout of 2^8 × 4.096 µs and an RNR delay of 0.64 ms, as one that
// knows nothing of dilation does.
func program(device string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	h := &host{loop: loop.NewReal(1, time.Now())}
	defer h.loop.Close()
	d, err := ibv.Open(h.loop, device, ibv.Options{Dilation: 1})
	if err != nil {
		return err
	}
	defer closeDevice(ctx, h.loop, d)
	nic := fabric.NIC{Device: d}
	for i, g := range d.GIDs() {
		if g.Is4In6() {
			nic.GIDIndex, nic.GID = i, g
		}
	}
	e, err := newEndpoint(ctx, h, nic, 4096, 1)
	if err != nil {
		return err
	}
	defer e.close(ctx)
	if err := e.connect(ctx, e, programTimeout, 6); err != nil {
		return err
	}
	a, err := await(ctx, h.loop, func(done func(verbs.QPAttr, error)) { e.qp.Query(done) })
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(a)
}

func TestAProgramsQueuePairsGetTheTimesOfTheFabric(t *testing.T) {
	f := build(t, star(2, topo.Gbps, time.Microsecond), Config{})
	device := f.DeviceName(topo.PortRef{Node: "h1", Port: "eth0"})
	ask := func(env []string) (verbs.QPAttr, string) {
		t.Helper()
		var out, errs strings.Builder
		c := exec.Command("/proc/self/exe")
		c.Env = append(append(os.Environ(), programEnv+"="+device), env...)
		c.Stdout, c.Stderr = &out, &errs
		if err := c.Run(); err != nil {
			t.Fatalf("%v: %s", err, errs.String())
		}
		var a verbs.QPAttr
		if err := json.Unmarshal([]byte(out.String()), &a); err != nil {
			t.Fatalf("%v: %s", err, out.String())
		}
		return a, errs.String()
	}
	if a, _ := ask(nil); a.Timeout != programTimeout || a.MinRNRTimer != programRNR {
		t.Fatalf("undisturbed, the program's QP has timeout %d and RNR timer %d", a.Timeout, a.MinRNRTimer)
	}
	env, notes, err := f.ProgramEnv("h1")
	if err != nil || len(notes) > 0 || len(env) == 0 {
		t.Fatalf("%q, %q, %v: is the library built (make build)?", env, notes, err)
	}
	a, said := ask(env)
	if a.Timeout != programTimeout+6 {
		t.Errorf("timeout %d at a dilation of 64", a.Timeout)
	}
	if said != "" {
		t.Errorf("an exact image, and the program is told %q", said)
	}
	// Beyond what there is: as far as it goes, and said. (The provider answers queries for the RNR
	// timer from memory, so the kernel's can't be asked for.)
	a, said = ask(append(env, exponentEnv+"=25"))
	if a.Timeout != 31 || !strings.Contains(said, "ACK timeout") || !strings.Contains(said, "RNR delay") {
		t.Errorf("timeout %d at a dilation of 2^25, saying %q", a.Timeout, said)
	}
	if env, _, err := f.ProgramEnv("leaf1"); err != nil || env != nil {
		t.Errorf("a switch's programs get %q, %v", env, err)
	}
}

func TestAProgramSeesTheDevicesOfItsNodeAlone(t *testing.T) {
	f := build(t, star(2, topo.Gbps, time.Microsecond), Config{})
	for node, other := range map[string]string{"h1": "h2", "h2": "h1"} {
		env, notes, err := f.ProgramEnv(node)
		if err != nil || len(notes) > 0 {
			t.Fatalf("%q, %v", notes, err)
		}
		c := exec.Command("ibv_devices")
		c.Env = append(os.Environ(), env...)
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		own, foreign := f.DeviceName(topo.PortRef{Node: node, Port: "eth0"}), f.DeviceName(topo.PortRef{Node: other, Port: "eth0"})
		if !strings.Contains(string(out), own) || strings.Contains(string(out), foreign) {
			t.Errorf("on %s, whose device is %s, a program sees\n%s", node, own, out)
		}
	}
}
