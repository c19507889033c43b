package asic

import (
	"errors"
	"strings"
	"testing"

	"github.com/rocebed/rocebed/datapath/dcqcn"
)

func TestSettingsThatCanNotBeAreRefusedByTheirFields(t *testing.T) {
	b := newBench(t, 4, 100*gig, nil)
	before := b.Settings()
	for want, change := range map[string]func(*Settings){
		"port.dscp.26 is 8":                                    func(s *Settings) { s.Port.DSCP[26] = 8 },
		"port.queue_of.3 is 9":                                 func(s *Settings) { s.Port.QueueOf[3] = 9 },
		"port.group_of.3 is 9":                                 func(s *Settings) { s.Port.GroupOf[3] = 9 },
		"port.queues.1.weight is -1":                           func(s *Settings) { s.Port.Queues[1].Weight = -1 },
		"port.queues.1.alpha is 4194303.9990234375":            func(s *Settings) { s.Port.Queues[1].Alpha = 1<<32 - 1 },
		"port.queues.2.ecn: kmin is 9B":                        func(s *Settings) { s.Port.Queues[2].ECN = &dcqcn.Marking{Kmin: 9, Kmax: 8} },
		"port.groups.3.xoff is 0B: a lossless group":           func(s *Settings) { s.Port.Groups[3].Alpha = 0 },
		"port.groups.3.headroom is":                            func(s *Settings) { s.Port.Groups[3].Headroom = 1 << 41 },
		"port.mtu is 60":                                       func(s *Settings) { s.Port.MTU = 60 },
		"port.pfc.quanta is 0":                                 func(s *Settings) { s.Port.PFC.Quanta = 0 },
		"port.pfc.response is -1ns":                            func(s *Settings) { s.Port.PFC.Response = -1 },
		"port.limit is":                                        func(s *Settings) { s.Port.Limit = 1 << 41 },
		"ports is 4: the ports are 0 to 3":                     func(s *Settings) { s.Ports = map[int]PortSettings{4: s.Port} },
		"ports.2.mtu is 1":                                     func(s *Settings) { p := s.Port; p.MTU = 1; s.Ports = map[int]PortSettings{2: p} },
		`balance.mode is "ecpm": give one of ecmp, spray`:      func(s *Settings) { s.Balance.Mode = "ecpm" },
		"balance.flowlet_gap is 0s":                            func(s *Settings) { s.Balance.Mode, s.Balance.FlowletGap = Flowlet, 0 },
		"watchdog.detect is -1ns":                              func(s *Settings) { s.Watchdog.Detect = -1 },
		"watchdog.restore is 0s":                               func(s *Settings) { s.Watchdog.Detect, s.Watchdog.Restore = 1, 0 },
		`watchdog.action is "": give one of drop, forward`:     func(s *Settings) { s.Watchdog.Detect, s.Watchdog.Action = 1, "" },
		"sample is -1ns":                                       func(s *Settings) { s.Sample = -1 },
		"buffer is 1KB: reserves and headroom of 4 ports take": func(s *Settings) { s.Buffer = 1000 },
	} {
		n := b.Settings()
		change(&n)
		err := b.Apply(n)
		var field *SettingError
		if err == nil || !strings.HasPrefix(err.Error(), "sw: "+want) || !errors.As(err, &field) && !strings.Contains(want, "ecn") {
			t.Errorf("want %q, got %v", want, err)
		}
	}
	if after := b.Settings(); after.Buffer != before.Buffer || after.Port.MTU != before.Port.MTU {
		t.Error("refused settings changed something")
	}
}

func TestAllThatIsWrongIsSaidAtOnce(t *testing.T) {
	s := DefaultSettings()
	s.Port.MTU, s.Sample = 0, -1
	if err := s.Validate(make([]PortConfig, 2)); err == nil || strings.Count(err.Error(), "\n") != 1 {
		t.Errorf("%v", err)
	}
}

func TestAlphaIsWrittenAsAFactor(t *testing.T) {
	if got := (AlphaUnit / 8).String() + " " + (8 * AlphaUnit).String() + " " + Alpha(1536).String(); got != "1/8 8 1.5" {
		t.Error(got)
	}
}

func TestAPortMayHaveSettingsOfItsOwn(t *testing.T) {
	b := newBench(t, 3, 100*gig, nil)
	n := b.Settings()
	p := n.Port
	p.DSCP[26] = 0
	n.Ports = map[int]PortSettings{0: p}
	if err := b.Apply(n); err != nil {
		t.Fatal(err)
	}
	b.give(0, b.frame(1, 26, 1000))
	b.give(2, b.frame(1, 26, 1000))
	b.give(0, b.frame(1, 26, 1000))
	if b.Depth(1, 0) != 1000 || b.Depth(1, 3) != 1000 {
		t.Errorf("%d bytes wait in queue 0, %d in 3", b.Depth(1, 0), b.Depth(1, 3))
	}
	if s := b.Stats(0); s.RxPriority[0] != 2 || s.RxPriority[3] != 0 {
		t.Errorf("%v", s.RxPriority)
	}
}
