package rnic

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// profileRows are the rows of docs/rnic.md's table of profiles.
func profileRows() []string {
	rows := []struct {
		knob  string
		value func(p *Profile) any
	}{
		{"`MaxUnacked`", func(p *Profile) any { return p.MaxUnacked }},
		{"`AckRequestEvery`", func(p *Profile) any { return p.AckRequestEvery }},
		{"`AckEvery`, `AckDelay`", func(p *Profile) any { return fmt.Sprintf("%d, %v", p.AckEvery, p.AckDelay) }},
		{"`TimerTick`", func(p *Profile) any { return p.TimerTick }},
		{"`EndlessRetry`", func(p *Profile) any { return p.EndlessRetry }},
		{"`OneNAK`", func(p *Profile) any { return p.OneNAK }},
		{"`DCQCN`", func(p *Profile) any {
			for _, name := range []string{"mlx5", "irdma", "ionic"} {
				if p.DCQCN != nil && *p.DCQCN == *params(name) {
					return name
				}
			}
			if p.DCQCN == nil {
				return "off"
			}
			return "other"
		}},
		{"`Scheduler.Weights`", func(p *Profile) any { return strings.Trim(fmt.Sprint(p.Scheduler.Weights), "[]") }},
		{"`Pause.Lossless`", func(p *Profile) any { return fmt.Sprintf("%#x", p.Pause.Lossless) }},
		{"`XOFF`, `XON`, `Headroom`", func(p *Profile) any { return fmt.Sprintf("%d, %d, %d", p.Pause.XOFF, p.Pause.XON, p.Pause.Headroom) }},
		{"`Doorbell`", func(p *Profile) any { return p.Stages.Doorbell }},
		{"`WQEFetch`", func(p *Profile) any { return p.Stages.WQEFetch }},
		{"`MessageRate`", func(p *Profile) any { return p.Stages.MessageRate }},
		{"`Headers`", func(p *Profile) any { return p.Stages.Headers }},
		{"`PacketRate`", func(p *Profile) any { return p.Stages.PacketRate }},
		{"`Prefetch`", func(p *Profile) any { return p.Stages.Prefetch }},
		{"`RxContext`", func(p *Profile) any { return p.Stages.RxContext }},
		{"`CQEWrite`", func(p *Profile) any { return p.Stages.CQEWrite }},
		{"`Jitter`", func(p *Profile) any { return p.Stages.Jitter }},
		{"`MTT`: entries, page, miss, parallel", func(p *Profile) any {
			if m := &p.Stages.MTT; m.Entries > 0 {
				return fmt.Sprintf("%d, %d KiB, %v, %d", m.Entries, m.Page>>10, m.Miss, m.Parallel)
			}
			return "always hits"
		}},
		{"`PCIe`: NIC, GPU, host", func(p *Profile) any { c := &p.Stages.PCIe; return fmt.Sprintf("%v, %v, %v", c.NIC, c.GPU, c.Host) }},
		{"`HostRead`, `GPURead`", func(p *Profile) any { return fmt.Sprintf("%v, %v", p.Stages.PCIe.HostRead, p.Stages.PCIe.GPURead) }},
	}
	names := ProfileNames()
	out := []string{"| knob | `" + strings.Join(names, "` | `") + "` |"}
	for _, r := range rows {
		row := "| " + r.knob
		for _, name := range names {
			p, _ := ProfileNamed(name)
			row += fmt.Sprintf(" | %v", r.value(&p))
		}
		out = append(out, row+" |")
	}
	return out
}

// What the page says of profiles, stages and counters is what there is. (Rows that it lacks are printed.)
func TestThePageNamesEveryProfileStageAndCounter(t *testing.T) {
	b, err := os.ReadFile("../../docs/rnic.md")
	if err != nil {
		t.Fatal(err)
	}
	text := string(b)
	for _, row := range profileRows() {
		if !strings.Contains(text, row+"\n") {
			t.Errorf("no row\n%s", row)
		}
	}
	for s := range stages {
		if !strings.Contains(text, "| "+s.String()+" |") {
			t.Errorf("no row of the stage %q", s)
		}
	}
	var c Counters
	for _, r := range c.Readings() {
		name := r.Name
		if i := strings.Index(name, "_prio"); i > 0 {
			if name[i+5] != '3' {
				continue
			}
			name = name[:i+5] + "N" + name[i+6:]
		}
		if !strings.Contains(text, "`"+name+"`") {
			t.Errorf("no counter %q", name)
		}
	}
}
