package rnic

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/rocebed/rocebed/datapath/dcqcn"
)

func TestEveryProfileIsValidAndFoundByItsName(t *testing.T) {
	for _, name := range ProfileNames() {
		p, err := ProfileNamed(name)
		if err != nil || p.Name != name {
			t.Fatalf("%s: found %q (%v)", name, p.Name, err)
		}
		if err := p.Validate(); err != nil {
			t.Error(err)
		}
	}
	_, err := ProfileNamed("mlx4")
	if err == nil || !strings.Contains(err.Error(), "default, rxe") {
		t.Errorf("the error doesn't name the profiles: %v", err)
	}
}

func TestAProfileIsItsTakersOwn(t *testing.T) {
	a, _ := ProfileNamed("connectx-like")
	a.DCQCN.RPGAIRate = 77
	a.Scheduler.Weights[0] = 99
	if b, _ := ProfileNamed("connectx-like"); b.DCQCN.RPGAIRate == 77 || b.Scheduler.Weights[0] == 99 {
		t.Error("a change of one changed the next")
	}
}

func TestWhatCannotBeIsRefusedByName(t *testing.T) {
	for field, spoil := range map[string]func(*Profile){
		"Recovery":             func(p *Profile) { p.Recovery = "go-back-1" },
		"MaxUnacked":           func(p *Profile) { p.MaxUnacked = 1 << 23 },
		"AckRequestEvery":      func(p *Profile) { p.AckRequestEvery = -1 },
		"Scheduler.Burst":      func(p *Profile) { p.Scheduler.Burst = 65 },
		"AckEvery":             func(p *Profile) { p.AckEvery = -1 },
		"AckDelay":             func(p *Profile) { p.AckEvery = 4 },
		"TimerTick":            func(p *Profile) { p.TimerTick = -1 },
		"CNPFlows":             func(p *Profile) { p.CNPFlows = -1 },
		"DCQCN":                func(p *Profile) { p.DCQCN = &dcqcn.Params{} },
		"Scheduler.Weights[3]": func(p *Profile) { p.Scheduler.Weights[3] = -1 },
		"Pause.XOFF":           func(p *Profile) { p.Pause.Headroom = -1 },
		"Pause.XON":            func(p *Profile) { p.Pause.XON = p.Pause.XOFF + 1 },
		"Pause.Lossless":       func(p *Profile) { p.Pause.Global = true },
		"Stages.Doorbell":      func(p *Profile) { p.Stages.Doorbell = -1 },
		"Stages.RxContext":     func(p *Profile) { p.Stages.RxContext = time.Minute },
		"Stages.MessageRate":   func(p *Profile) { p.Stages.MessageRate = 0.5 },
		"Stages.PacketRate":    func(p *Profile) { p.Stages.PacketRate = math.NaN() },
		"Stages.MTT":           func(p *Profile) { p.Stages.MTT = Translate{Entries: 1, Page: 1} },
		"Stages.IOMMU":         func(p *Profile) { p.Stages.IOMMU = Translate{Entries: 1, Page: 1} },
		"Stages.PCIe":          func(p *Profile) { p.Stages.PCIe.NIC.Gen = 9 },
	} {
		p := Default()
		spoil(&p)
		err := p.Validate()
		var pe *ProfileError
		if !errors.As(err, &pe) || pe.Field != field || pe.Profile != "default" || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v", field, err)
		}
	}
}
