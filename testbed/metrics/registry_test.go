package metrics

import (
	"os"
	"strings"
	"testing"
)

func TestARegistryRefusesWhatIsNotWellDescribed(t *testing.T) {
	good := Desc{"drops", []string{"node"}, "packets", Counter, "packets lost", "test"}
	change := func(f func(*Desc)) Desc { d := good; f(&d); return d }
	for want, d := range map[string]Desc{
		"snake_case":       change(func(d *Desc) { d.Name = "Drops" }),
		"none of packets":  change(func(d *Desc) { d.Unit = "pkts" }),
		"neither counter":  change(func(d *Desc) { d.Kind = "histogram" }),
		"says not what":    change(func(d *Desc) { d.Help = "" }),
		"comes twice":      change(func(d *Desc) { d.Labels = []string{"node", "node"} }),
		"where it is read": change(func(d *Desc) { d.Source = "" }),
		"label \"a-b\" is": change(func(d *Desc) { d.Labels = []string{"a-b"} }),
		"registered twice": good,
	} {
		r := New()
		if want == "registered twice" {
			r.MustRegister(good)
		}
		if err := r.Register(d); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want an error about %q, got %v", want, err)
		}
	}
}

func TestSamplesOfUnregisteredMetricsAreErrors(t *testing.T) {
	err := Standard.Check([]Sample{
		{"sent_pkts", []string{"h1", "eth0"}, 1},
		{"sent_packets", []string{"h1", "eth0"}, 1},
		{"sent_packets", []string{"h2", "eth0"}, 1},
		{"rcvd_pkts", []string{"h1"}, 1},
	})
	if err == nil {
		t.Fatal("no error")
	}
	if got := strings.Split(err.Error(), "\n"); len(got) != 2 ||
		!strings.Contains(got[0], "sent_packets is not registered") || !strings.Contains(got[1], `1 label values ["h1"] for labels ["node" "port"]`) {
		t.Errorf("got %q", got)
	}
}

func TestTheMetricsPageIsWhatTheRegistrySays(t *testing.T) {
	page, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	if string(page) != Standard.Markdown() {
		t.Error("docs/metrics.md is out of date: run go generate ./testbed/metrics")
	}
}

func TestWhatOtherNICsCountIsFoundUnderANameThatIsHere(t *testing.T) {
	for _, e := range elsewhere {
		if d, ok := Standard.Lookup(e.theirs); ok && d.Source != SourceNIC {
			t.Errorf("%s is a metric of ours, read from %s", e.theirs, d.Source)
		}
		if _, ok := Standard.Lookup(e.ours); !ok && (e.ours != "" || e.how == "") {
			t.Errorf("%s: there is no %q, and no word about why", e.theirs, e.ours)
		}
	}
}

func TestASeriesKeyNamesItsLabels(t *testing.T) {
	if got := Standard.Key(Sample{"qdisc_drops", []string{"leaf1", "eth0", "shape"}, 0}); got != "qdisc_drops{node=leaf1,port=eth0,slot=shape}" {
		t.Error(got)
	}
}
