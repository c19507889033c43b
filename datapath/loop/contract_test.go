package loop

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"
)

const look = Duration(100)

// modelled is what a random program does by the contract.
func modelled(nodes uint32, seed uint64, far Duration, until Time) outcome {
	m := &model{lookahead: look, nodes: map[uint32]*modelNode{}}
	w := worldOfModel(m)
	o := outcome{all: []string{}}
	for id := range nodes {
		m.node(id)
		w.agents = append(w.agents, newAgent(w, id, nodes, seed, look, far, &o.all))
	}
	for _, a := range w.agents {
		a.start()
	}
	m.runUntil(until)
	for _, a := range w.agents {
		o.logs = append(o.logs, a.log)
	}
	o.now, o.handled = m.now, m.handled
	return o
}

// run is what it does in virtual time. Nodes are made in a random order; drive runs them.
func run(v *Virtual, nodes uint32, seed uint64, far Duration, oneOrder bool, drive func()) outcome {
	rng := rand.New(rand.NewPCG(seed, 1))
	for _, id := range rng.Perm(int(nodes)) {
		v.Node(uint32(id))
	}
	w := worldOf(v)
	var o outcome
	var shared *[]string
	if oneOrder {
		o.all = []string{}
		shared = &o.all
	}
	for id := range nodes {
		w.agents = append(w.agents, newAgent(w, id, nodes, seed, look, far, shared))
	}
	for _, i := range rng.Perm(int(nodes)) {
		w.agents[i].start()
	}
	drive()
	for _, a := range w.agents {
		o.logs = append(o.logs, a.log)
	}
	o.now, o.handled = v.Now(), v.Handled()
	return o
}

func TestEventsHappenInTheOrderOfTheContract(t *testing.T) {
	for seed := range uint64(60) {
		nodes, far, until := uint32(1+seed%9), Duration(1+seed%5*5000), Time(6000)
		want := modelled(nodes, seed, far, until)
		if len(want.all) < 10 {
			t.Fatalf("seed %d: the program made only %d events", seed, len(want.all))
		}
		v := NewVirtual(look)
		got := run(v, nodes, seed, far, true, func() { v.RunUntil(until) })
		got.check(t, fmt.Sprint("seed ", seed), want)
	}
}

// Steps, runs and windows may follow each other: none leaves the clock where the next may not go on.
func TestNodesSeeTheSameWhateverDrivesThem(t *testing.T) {
	for seed := range uint64(40) {
		nodes, far, until := uint32(2+seed%9), Duration(3000), Time(6000)
		want := modelled(nodes, seed, far, until)
		v := NewVirtual(look, Workers(1+int(seed%3)), Partition(func(n uint32) int { return int(n % 4) }))
		rng := rand.New(rand.NewPCG(seed, 2))
		got := run(v, nodes, seed, far, false, func() {
			soon := func() bool { return v.next() > until-1000 }
			for !soon() {
				switch rng.IntN(3) {
				case 0:
					for range rng.IntN(20) {
						if v.next() <= until {
							v.Step()
						}
					}
				case 1:
					n := rng.IntN(5)
					v.Run(func() bool { n--; return n < 0 || soon() })
				case 2:
					v.RunUntil(min(until, v.Now()+Time(rng.IntN(200))))
				}
			}
			v.RunUntil(until)
		})
		got.check(t, fmt.Sprint("seed ", seed), want)
	}
}

func TestNodesSeeTheSameOnAnyNumberOfWorkers(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for seed := range uint64(6) {
		nodes, far, until := uint32(24), Duration(3000), Time(12000)
		want := modelled(nodes, seed, far, until)
		windows := -1
		for _, c := range []struct {
			workers, procs int
			of             func(uint32) int
		}{
			{1, 1, nil},
			{1, 4, func(n uint32) int { return int(n / 5) }},
			{2, 1, nil},
			{2, 4, func(n uint32) int { return int(n / 5) }},
			{3, 2, func(n uint32) int { return 2 * int(n%5) }}, // some have no nodes
			{8, 4, nil},
			{64, 8, func(n uint32) int { return int(n) }},
		} {
			runtime.GOMAXPROCS(c.procs)
			opts := []Option{Workers(c.workers)}
			if c.of != nil {
				opts = append(opts, Partition(c.of))
			}
			v := NewVirtual(look, opts...)
			asked := 0
			got := run(v, nodes, seed, far, false, func() {
				v.Run(func() bool { asked++; return v.Now() > until*2/3 })
				v.RunUntil(until)
			})
			got.check(t, fmt.Sprintf("seed %d, %d workers on %d cores", seed, c.workers, c.procs), want)
			if windows < 0 {
				windows = asked
			}
			if asked != windows {
				t.Errorf("%d workers asked %d times whether to stop, others %d times", c.workers, asked, windows)
			}
		}
	}
}

func TestPostsFromOutsideAreTakenWhileWorkersRun(t *testing.T) {
	v := NewVirtual(look, Workers(2))
	const nodes, posts = 4, 200
	stop := false // the callers' goroutine's, between windows
	got := make([]int, nodes)
	for id := range uint32(nodes) {
		n := v.Node(id)
		tick := &Timer{}
		tick.Fire = func() { n.Arm(tick, n.Now()+1) }
		n.Arm(tick, 0)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for i := range posts {
			id := uint32(i % nodes)
			v.Node(id).Post(func() { got[id]++ })
		}
	}()
	deadline := time.Now().Add(10 * time.Second)
	v.Run(func() bool {
		stop = got[0]+got[1]+got[2]+got[3] == posts
		return stop || time.Now().After(deadline)
	})
	<-ended
	if !stop {
		t.Errorf("of %d posts to each node ran %v", posts/nodes, got)
	}
}

func TestAWorkersPanicReachesTheCaller(t *testing.T) {
	v := NewVirtual(look, Workers(2))
	for id := range uint32(2) {
		n := v.Node(id)
		tick := &Timer{}
		tick.Fire = func() {
			if n.Now() == 5000 && n.ID() == 1 {
				panic("spoiled")
			}
			n.Arm(tick, n.Now()+1)
		}
		n.Arm(tick, 0)
	}
	defer func() {
		if r := recover(); r == nil || len(fmt.Sprint(r)) < 7 || fmt.Sprint(r)[:7] != "spoiled" {
			t.Errorf("the caller saw %v", r)
		}
	}()
	v.Run(func() bool { return false })
}

func TestWhatRunsBetweenWindowsRunsOnceForEach(t *testing.T) {
	v := NewVirtual(look, Workers(2))
	n := v.Node(1)
	After(n, 10, func() {})
	After(n, 10+look, func() {})
	After(n, 10+look-1, func() {})
	var at []Time
	v.Between(func() { at = append(at, v.Now()) })
	v.RunUntil(1000)
	if fmt.Sprint(at) != fmt.Sprint([]Time{10 + Time(look) - 1, 10 + Time(look)}) {
		t.Errorf("windows ended at %v", at)
	}
}

func TestAWindowThatEndsWithTheRunIsNoLongerThanTheLookAhead(t *testing.T) {
	for _, workers := range []int{1, 2} {
		v := NewVirtual(time.Microsecond, Workers(workers), Partition(func(n uint32) int { return int(n) % workers }))
		hears := v.Node(2)
		var got []uint32
		for _, n := range []*Node{v.Node(1), v.Node(3)} {
			After(n, 0, func() { hears.Post(func() { got = append(got, n.ID()) }) })
		}
		After(hears, time.Microsecond, func() { got = append(got, 2) })
		v.RunUntil(Time(time.Microsecond)) // a look-ahead after the first event, to the nanosecond
		if want := []uint32{1, 2, 3}; !slices.Equal(got, want) {
			t.Errorf("%d workers: handled what nodes %v caused, in that order; want %v", workers, got, want)
		}
	}
}
