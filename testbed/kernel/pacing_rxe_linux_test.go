//go:build linux

package kernel

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"

	"github.com/rocebed/rocebed/testbed/fabric"
	"github.com/rocebed/rocebed/testbed/kernel/engine"
	"github.com/rocebed/rocebed/topo"
)

// pacer gives the flow of one queue pair of rxe, h1's to h2, a rate of wall time.
type pacer func(topo.Rate) error

// steps are the rates that it is given, one after the other, each for a while.
var steps = []topo.Rate{20 * topo.Mbps, 60 * topo.Mbps, 5 * topo.Mbps}

const (
	stepFor = 3 * time.Second
	window  = 250 * time.Millisecond // what is counted at a time: 38 packets at 5 Mb/s
)

// BenchmarkPacing steps the rate of a flow of rxe that always has something to send, and compares what leaves the host: paced by
// the engine, by an HTB class, and by departure times under fq. docs/dcqcn.md has the figures.
//
//	go test -tags ibv -run '^$' -bench Pacing -benchtime 1x ./testbed/kernel
func BenchmarkPacing(b *testing.B) {
	dcqcn := Config{NICs: fabric.NICSettings{NICModel: fabric.NICModel{DCQCN: &fabric.DCQCNSettings{Profile: "paper"}}}}
	for _, c := range []struct {
		name string
		cfg  Config
		pace func(*testing.B, *Fabric, *transfer) (set pacer, waits func() bool)
	}{{"engine", dcqcn, byEngine}, {"htb", Config{}, byHTB}, {"fq-edt", Config{}, byDepartureTime}} {
		b.Run(c.name, func(b *testing.B) {
			for range b.N {
				f := build(b, star(2, 10*topo.Gbps, time.Microsecond), c.cfg) // 156 Mb/s of wall time
				ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
				x, err := newTransfer(ctx, f.hostNamed(b, "h1"), f.hostNamed(b, "h2"), 1<<18, 4, patient, testRetries)
				if err != nil {
					b.Fatal(err)
				}
				set, waits := c.pace(b, f, x)
				if err := set(steps[0]); err != nil {
					b.Fatal(err)
				}
				run, stop := context.WithCancel(ctx)
				ended := make(chan error, 1)
				go func() {
					_, _, err := x.run(run, 0, time.Duration(len(steps)+1)*stepFor)
					ended <- err
				}()
				follow(b, f, set, waits)
				err = <-ended
				stop()
				if err := errors.Join(err, x.close(ctx), f.localDrops()); err != nil {
					b.Error(err)
				}
				cancel()
			}
		})
	}
}

// follow steps the rate and reports how what is sent follows; and, where waits can say it, how often nothing waited to be sent.
func follow(b *testing.B, f *Fabric, set pacer, waits func() bool) {
	b.Helper()
	read := sentBytes(b, f)
	b.ReportMetric(0, "ns/op")
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for i, rate := range steps {
		if err := set(rate); err != nil {
			b.Fatal(err)
		}
		type point struct {
			at    time.Duration
			bytes float64
		}
		began := time.Now()
		points := []point{{0, read()}}
		empty := 0
		for time.Since(began) < stepFor {
			<-tick.C
			points = append(points, point{time.Since(began), read()})
			if waits != nil && !waits() {
				empty++
			}
		}
		// The rate over the last two thirds; the end of the last window that was more than a tenth off; the worst window after that.
		mean := func(from, to int) float64 {
			return 8 * (points[to].bytes - points[from].bytes) / (points[to].at - points[from].at).Seconds() / float64(rate)
		}
		last := len(points) - 1
		third := 0
		for points[third].at < stepFor/3 {
			third++
		}
		settled, worst := time.Duration(0), 0.0
		for from, to := 0, 0; ; from++ {
			for to < last && points[to].at-points[from].at < window {
				to++
			}
			if points[to].at-points[from].at < window {
				break
			}
			off := math.Abs(mean(from, to) - 1)
			if off > 0.1 {
				settled = points[from].at
			}
			if from >= third {
				worst = max(worst, off)
			}
		}
		name := fmt.Sprintf("step%d-%vMbps", i, uint64(rate/topo.Mbps))
		b.ReportMetric(100*(mean(third, last)-1), name+"-error%")
		b.ReportMetric(100*worst, name+"-worst%")
		b.ReportMetric(settled.Seconds()*1e3, name+"-settled-ms")
		if waits != nil {
			b.ReportMetric(100*float64(empty)/float64(len(points)), name+"-empty%")
		}
	}
}

// sentBytes reads what h1 has sent, as its interface counts it behind the queues, with what a frame costs on the line besides.
func sentBytes(b testing.TB, f *Fabric) func() float64 {
	b.Helper()
	l, _ := f.wiring.Node("h1").Link("eth0")
	var file *os.File
	if err := f.wiring.Node("h1").Do(func() (err error) { file, err = os.Open("/proc/thread-self/net/dev"); return err }); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { file.Close() })
	buf := make([]byte, 4096)
	return func() float64 {
		n, err := file.ReadAt(buf, 0)
		_, rest, ok := bytes.Cut(buf[:n], []byte(l.Name+":"))
		fields := bytes.Fields(rest)
		if !ok || len(fields) < 10 {
			b.Fatalf("%v: %s", err, buf[:n])
		}
		sent, _ := strconv.ParseFloat(string(fields[8]), 64)
		frames, _ := strconv.ParseFloat(string(fields[9]), 64)
		return sent + 24*frames
	}
}

func byEngine(b *testing.B, f *Fabric, x *transfer) (pacer, func() bool) {
	h2, _ := f.Plan().Port(topo.PortRef{Node: "h2", Port: "eth0"})
	flow, err := f.engine.OpenFlow(engine.FlowKey{Port: f.numbers[topo.PortRef{Node: "h1", Port: "eth0"}], To: h2.Addr.Addr(), QPN: x.dst.qp.Num()}, steps[0])
	if err != nil {
		b.Fatal(err)
	}
	return flow.SetRate, func() bool {
		r, err := flow.Read()
		if err != nil {
			b.Fatal(err)
		}
		return r.Packets > 0
	}
}

// byHTB sets the rate of the class that all of h1's packets are in.
func byHTB(b *testing.B, f *Fabric, _ *transfer) (pacer, func() bool) {
	return func(r topo.Rate) error {
		return f.hostNamed(b, "h1").ports.change("eth0", func(d declaration) declaration { return d.withRate(r) })
	}, nil
}

// byDepartureTime has a program give each packet of the queue pair its time of departure, which fq keeps.
func byDepartureTime(b *testing.B, f *Fabric, _ *transfer) (pacer, func() bool) {
	state, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: 16, MaxEntries: 1}) // ns << 16 a byte; the next departure
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { state.Close() })
	costs, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: 8, MaxEntries: 1})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { costs.Close() })
	const length, tstamp = 0, 152 // of struct __sk_buff
	lookup := func(m *ebpf.Map, to asm.Register) asm.Instructions {
		return asm.Instructions{
			asm.StoreImm(asm.RFP, -4, 0, asm.Word), asm.LoadMapPtr(asm.R1, m.FD()), asm.Mov.Reg(asm.R2, asm.RFP), asm.Add.Imm(asm.R2, -4),
			asm.FnMapLookupElem.Call(), asm.JEq.Imm(asm.R0, 0, "out"), asm.Mov.Reg(to, asm.R0),
		}
	}
	code := asm.Instructions{asm.Mov.Reg(asm.R6, asm.R1)}
	code = append(code, lookup(costs, asm.R7)...)
	code = append(code, lookup(state, asm.R8)...)
	code = append(code,
		asm.LoadMem(asm.R9, asm.R6, length, asm.Word),
		asm.JLT.Imm(asm.R9, 1000, "out"), // what is small isn't the flow's data
		asm.FnKtimeGetNs.Call(),
		asm.LoadMem(asm.R1, asm.R8, 0, asm.DWord),
		asm.JGE.Reg(asm.R1, asm.R0, "later"),
		asm.Mov.Reg(asm.R1, asm.R0),
		asm.StoreMem(asm.R6, tstamp, asm.R1, asm.DWord).WithSymbol("later"),
		asm.Add.Imm(asm.R9, 24),
		asm.LoadMem(asm.R2, asm.R7, 0, asm.DWord),
		asm.Mul.Reg(asm.R9, asm.R2),
		asm.RSh.Imm(asm.R9, 16),
		asm.Add.Reg(asm.R1, asm.R9),
		asm.StoreMem(asm.R8, 0, asm.R1, asm.DWord),
		asm.Mov.Imm(asm.R0, -1).WithSymbol("out"), // TCX_NEXT
		asm.Return(),
	)
	prog, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.SchedCLS, Instructions: code, License: "GPL"})
	if err != nil {
		b.Fatalf("%+v", err)
	}
	b.Cleanup(func() { prog.Close() })
	n := f.wiring.Node("h1")
	l, _ := n.Link("eth0")
	if err := n.Do(func() error {
		if out, err := exec.Command("tc", "qdisc", "replace", "dev", l.Name, "root", "fq").CombinedOutput(); err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		a, err := link.AttachTCX(link.TCXOptions{Program: prog, Attach: ebpf.AttachTCXEgress, Interface: l.Index})
		if err == nil {
			b.Cleanup(func() { a.Close() })
		}
		return err
	}); err != nil {
		b.Fatal(err)
	}
	return func(r topo.Rate) error { return costs.Put(uint32(0), uint64(8e9*65536/float64(r))) }, nil
}
