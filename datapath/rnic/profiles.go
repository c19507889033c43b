package rnic

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rocebed/rocebed/datapath/dcqcn"
)

// lossless3 pauses RoCE's usual priority alone. The thresholds are ours: XOFF at about 40 packets, headroom for 2 km of
// cable at 100 Gb/s, 300 m at 400 Gb/s (docs/asic.md has the formula).
var lossless3 = Pause{Lossless: 1 << 3, XOFF: 160_000, XON: 80_000, Headroom: 300_000}

// fair gives CNPs' priority strict precedence, and the others equal shares.
var fair = Scheduler{Burst: 1, Weights: [8]int{4, 4, 4, 4, 4, 4, 0, 4}}

// hardware are the stages that the vendor-like profiles share; see docs/rnic.md for where each figure is from.
var hardware = Stages{
	Doorbell: 150 * time.Nanosecond, WQEFetch: 450 * time.Nanosecond, MessageRate: 100e6,
	Headers: 60 * time.Nanosecond, PacketRate: 150e6, Prefetch: 2 * time.Microsecond,
	RxContext: 120 * time.Nanosecond, CQEWrite: 300 * time.Nanosecond,
	PCIe: PCIeConfig{
		NIC: PCIeLink{4, 16}, GPU: PCIeLink{4, 16}, Host: PCIeLink{4, 16}, MaxPayload: 256,
		HostRead: 450 * time.Nanosecond, GPURead: 600 * time.Nanosecond,
	},
}

// with returns the stages changed.
func (s Stages) with(change func(*Stages)) Stages {
	change(&s)
	return s
}

// Default is the profile that a fabric uses where it names none: a ConnectX-like NIC that coalesces ACKs,
// without DCQCN, whose translations always hit.
func Default() Profile {
	return Profile{
		Name: "default", Recovery: GoBackN, MaxUnacked: 4096, AckRequestEvery: 16,
		Scheduler: fair, Pause: lossless3, Stages: hardware,
	}
}

// profileList are the profiles by name. DCQCN is left to who uses one, but where the make has it on.
var profileList = []func() Profile{
	Default,
	func() Profile {
		return Profile{
			Name: "rxe", Recovery: GoBackN, MaxUnacked: 128, AckRequestEvery: 64,
			TimerTick: 4 * time.Millisecond, EndlessRetry: true, OneNAK: true,
			Stages: Stages{Jitter: time.Microsecond},
		}
	},
	func() Profile {
		p := Default()
		p.Name, p.AckRequestEvery = "connectx-like", 256
		p.DCQCN = params("mlx5")
		p.Stages = p.Stages.with(func(s *Stages) {
			s.MessageRate, s.PacketRate = 200e6, 215e6
			s.MTT = Translate{Entries: 2048, Page: 2 << 20, Miss: 600 * time.Nanosecond, Parallel: 8}
		})
		return p
	},
	func() Profile {
		p := Default()
		p.Name, p.AckRequestEvery, p.MaxUnacked = "irdma-like", 32, 1024
		p.DCQCN = params("irdma")
		p.Stages = p.Stages.with(func(s *Stages) {
			s.Doorbell, s.MessageRate, s.PacketRate = 250*time.Nanosecond, 60e6, 100e6
			s.MTT = Translate{Entries: 4096, Page: 4096, Miss: 800 * time.Nanosecond, Parallel: 8}
		})
		return p
	},
	func() Profile {
		p := Default()
		p.Name, p.AckRequestEvery = "ionic-like", 32
		p.DCQCN = params("ionic")
		p.Stages = p.Stages.with(func(s *Stages) {
			s.MessageRate, s.PacketRate = 80e6, 150e6
			s.MTT = Translate{Entries: 4096, Page: 64 << 10, Miss: 700 * time.Nanosecond, Parallel: 16}
			s.PCIe.NIC, s.PCIe.GPU, s.PCIe.Host = PCIeLink{5, 16}, PCIeLink{5, 16}, PCIeLink{5, 16}
		})
		return p
	},
	func() Profile {
		return Profile{Name: "ideal", Recovery: GoBackN, AckRequestEvery: 4, Scheduler: fair, Pause: Pause{Lossless: 1 << 3}}
	},
}

// params are a DCQCN profile's.
func params(name string) *dcqcn.Params {
	p, err := dcqcn.ProfileNamed(name)
	if err != nil {
		panic(err)
	}
	return &p.Params
}

// ProfileNamed makes a profile of its own of a name. Its error names those that there are.
func ProfileNamed(name string) (Profile, error) {
	names := ProfileNames()
	if i := slices.Index(names, name); i >= 0 {
		return profileList[i](), nil
	}
	return Profile{}, fmt.Errorf("there is no RNIC profile %q, only %s", name, strings.Join(names, ", "))
}

// ProfileNames are the names of all profiles.
func ProfileNames() []string {
	var names []string
	for _, f := range profileList {
		names = append(names, f().Name)
	}
	return names
}
