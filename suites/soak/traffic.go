package soak

import (
	"fmt"
	"slices"
	"strings"
)

// most is how many bytes a workload may move in all, about: what is drawn is cut down to it.
const most = 3 << 20

// workloads draws one to three, some of them one after the other.
func (g *generator) workloads() {
	g.line("workloads:")
	var names []string
	for i := range g.between(1, 3) {
		name := fmt.Sprintf("w%d", i)
		keys := []string{"name: " + name}
		add := func(format string, args ...any) { keys = append(keys, fmt.Sprintf(format, args...)) }
		if g.chance(25) {
			g.collective(add)
		} else {
			g.flows(add)
		}
		switch {
		case len(names) > 0 && g.chance(40):
			add("after: %s", one(g, names...))
		case g.chance(40):
			add("start: %s", one(g, "5us", "100us", "400us"))
		}
		names = append(names, name)
		g.line("  - {%s}", strings.Join(keys, ", "))
	}
}

func (g *generator) collective(add func(string, ...any)) {
	ranks := 0
	for _, h := range g.t.Hosts() {
		ranks += h.GPUs
	}
	size := one(g, 4, 32, 64, 256)
	for size > 4 && size<<10*ranks > most {
		size /= 2
	}
	add("kind: %s", one(g, "all-reduce", "all-to-all"))
	add("size: %dKiB", size*ranks) // a block a rank
	add("slice: %dKiB", one(g, 4, 16, 64))
	add("messages: %d", g.between(1, 2))
}

// flows draws a workload between NICs.
func (g *generator) flows(add func(string, ...any)) {
	op, transport := one(g, "write", "read", "send", "atomic"), "rc"
	if g.chance(25) {
		switch op {
		case "write":
			transport = "uc"
		case "send":
			transport = one(g, "uc", "ud")
		}
	}
	flows := g.ends(op, transport, add)
	size, count := one(g, 1, 64, 1000, 4096, 16<<10, 64<<10, 256<<10, 1<<20), g.between(1, 40)
	qps := one(g, 1, 1, 2, 4)
	switch {
	case transport == "ud":
		size = one(g, 1, 100, 256)
	case op == "atomic":
		size, count = 8, g.between(1, 200)
	}
	for size*count*qps*flows > most && count > 1 {
		count = (count + 1) / 2
	}
	for size*count*qps*flows > most && size > 4096 {
		size /= 2
	}
	if op != "atomic" {
		add("size: %d", size)
	}
	add("messages: %d", count)
	add("qps: %d", qps)
	if transport != "rc" {
		add("transport: %s", transport)
	}
	if g.chance(30) {
		add("depth: %d", one(g, 1, 2, 8, 32))
	}
	if g.chance(20) {
		add("mode: latency")
	}
	if g.chance(20) && op != "atomic" {
		add("signaling: selective")
	}
	g.attributes(op, transport, add)
}

// ends draws who sends to whom, and says how many flows that makes.
func (g *generator) ends(op, transport string, add func(string, ...any)) (flows int) {
	all := g.interfaces()
	switch {
	case g.chance(20) && len(all) <= 8 && transport == "rc":
		add("kind: all-pairs")
		add("op: %s", op)
		return len(all) * (len(all) - 1)
	case g.chance(25) && transport == "rc":
		to := one(g, all...)
		host, _, _ := strings.Cut(to, ":")
		var from []string
		for _, name := range all {
			if !strings.HasPrefix(name, host+":") {
				from = append(from, name)
			}
		}
		from = g.some(from, g.between(1, 6))
		add("kind: incast")
		add("op: %s", op)
		add("from: %s", list(from))
		add("to: %s", list([]string{to}))
		return len(from)
	}
	add("kind: %s", op)
	two := g.some(all, 2)
	add("from: %s", list(two[:1]))
	add("to: %s", list(two[1:]))
	return 1
}

// attributes draws queue pairs': timeouts are short, so that runs are.
func (g *generator) attributes(op, transport string, add func(string, ...any)) {
	if transport != "rc" {
		return
	}
	keys := []string{fmt.Sprintf("timeout: %d", one(g, 6, 8, 9)), fmt.Sprintf("retry_cnt: %d", one(g, 3, 6, 6))}
	if op == "send" && g.chance(30) {
		add("receive_delay: %s", one(g, "20us", "300us"))
		keys = append(keys, fmt.Sprintf("min_rnr_timer: %d", one(g, 1, 5, 10)))
	}
	if g.chance(30) {
		keys = append(keys, fmt.Sprintf("mtu: %d", 256))
	}
	if (op == "read" || op == "atomic") && g.chance(50) {
		keys = append(keys, fmt.Sprintf("max_rd_atomic: %d", one(g, 1, 2, 16)))
	}
	add("qp: {%s}", strings.Join(keys, ", "))
}

// faults draws none to three.
func (g *generator) faults() {
	n := one(g, 0, 1, 1, 2, 3)
	if n == 0 {
		return
	}
	g.line("faults:")
	kinds := []string{"loss", "loss", "delay", "reorder", "duplicate", "corrupt", "rate", "down", "flap"}
	never := func(again ...string) {
		kinds = slices.DeleteFunc(kinds, func(k string) bool { return slices.Contains(again, k) })
	}
	for i := range n {
		keys := []string{fmt.Sprintf("name: f%d", i), fmt.Sprintf("at: %s", list(g.some(g.ports(), g.between(1, 2)))), "may_miss: true"}
		add := func(format string, args ...any) { keys = append(keys, fmt.Sprintf(format, args...)) }
		add("direction: %s", one(g, "egress", "ingress", "both"))
		switch kind := one(g, kinds...); kind {
		case "loss":
			add("kind: loss, %s", one(g, "probability: 0.5%", "probability: 3%", "every_nth: 50", "gilbert_elliott: {p: 1%, r: 30%, loss_bad: 50%, loss_good: 0%}"))
		case "delay":
			add("kind: delay, delay: %s, jitter: %s, distribution: %s", one(g, "1us", "20us"), one(g, "500ns", "5us"), one(g, "uniform", "normal", "pareto", "paretonormal"))
		case "reorder":
			add("kind: reorder, probability: %s, delay: %s", one(g, "1%", "10%"), one(g, "2us", "30us"))
		case "duplicate", "corrupt":
			add("kind: %s, probability: %s", kind, one(g, "1%", "5%"))
		case "rate":
			add("kind: rate, rate: %s", one(g, "500Mbps", "5Gbps"))
			never("rate") // a port has one line
		case "down":
			add("kind: down")
			never("down", "flap") // a link that is down can't go down
		case "flap":
			add("kind: flap, period: %s, down: %s", one(g, "300us", "1ms"), one(g, "20us", "100us"))
			never("down", "flap")
		}
		at, length := one(g, "0us", "10us", "200us"), one(g, "50us", "300us", "1ms")
		if strings.Contains(strings.Join(keys, " "), "kind: down") || g.chance(70) {
			add("schedule: {at: %s, for: %s}", at, length)
		} else {
			add("schedule: {at: %s}", at)
		}
		g.line("  - {%s}", strings.Join(keys, ", "))
	}
}
