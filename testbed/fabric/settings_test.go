package fabric

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/rocebed/rocebed/datapath/dcqcn"
	"github.com/rocebed/rocebed/topo"
	"github.com/rocebed/rocebed/topo/strict"
)

// read decodes the two sections as a scenario has them.
func read(t *testing.T, text string) (Settings, error) {
	t.Helper()
	var f struct {
		NICs     NICSettings    `yaml:"nics"`
		Switches SwitchSettings `yaml:"switches"`
	}
	doc, err := strict.Read("s.yaml", []byte(text), &f)
	s := Settings{NICs: f.NICs, Switches: f.Switches}
	if err == nil {
		err = doc.Locate("", s.Validate())
	}
	return s, err
}

const everything = `
nics:
  profile: connectx-like
  recovery: selective-repeat
  dcqcn: {profile: paper, rpg_time_reset: 300us, rpg_ai_rate: 5Mbps, clamp_tgt_rate: false}
  max_unacked: 512
  ack: {request_every: 16, every: 4, delay: 1us}
  priorities: {26: 4, 0: 1}
  pfc: {priorities: [3, 4], xoff: 100KB, xon: 50KB, headroom: 64KB}
  memory: phantom
  process: true
  pcie: {nic: gen4 x16, gpu: gen5 x8}
  override:
    - {node: "h[12]", dcqcn: "off"}
    - {node: h2, memory: real, recovery: go-back-0}
switches:
  buffer: 1MiB
  memory: 32MiB
  alpha: 1/4
  reserved: 10KB
  ecn: {kmin: 40KB, kmax: 200KB, pmax: 10%, priorities: [3], marker: bernoulli}
  priorities: {26: 4}
  queues:
    - {priority: 3, weight: 4}
    - {priority: 6, weight: 0, ecn: {kmin: 1KB, kmax: 2KB, pmax: 1%}}
  pfc: {priorities: [3], xoff: 96KB, xon: 10KB, headroom: 50KB, send: false}
  watchdog: {detect: 200ms, restore: 400ms, action: forward}
  routing: flowlet
  flowlet_gap: 20us
  override:
    - {node: "spine*", routing: ecmp}
`

func TestEverySettingIsReadAndOverridesWinKeyByKey(t *testing.T) {
	s, err := read(t, everything)
	if err != nil {
		t.Fatal(err)
	}
	h1, h2, h3 := s.NICs.Of("h1"), s.NICs.Of("h2"), s.NICs.Of("h3")
	if h1.DCQCN.Profile != "off" || h2.DCQCN.Profile != "off" || h3.DCQCN.Profile != "paper" {
		t.Errorf("DCQCN: %+v, %+v, %+v", h1.DCQCN, h2.DCQCN, h3.DCQCN)
	}
	if h1.Memory != MemoryPhantom || h2.Memory != MemoryReal || h2.Recovery != "go-back-0" || h2.MaxUnacked != 512 {
		t.Errorf("h1 %+v, h2 %+v", h1, h2)
	}
	if p := h3.PCIe; p.NIC != (PCIeLink{Gen: 4, Width: 16}) || p.GPU != (PCIeLink{Gen: 5, Width: 8}) || p.Host != (PCIeLink{}) {
		t.Errorf("PCIe %+v", p)
	}
	if all := h3.Priorities.All(); !reflect.DeepEqual(all, []DSCPPriority{{0, 1}, {26, 4}}) {
		t.Errorf("priorities %v", all)
	}
	leaf, spine := s.Switches.Of("leaf1"), s.Switches.Of("spine1")
	if leaf.Routing != "flowlet" || spine.Routing != "ecmp" || spine.Alpha != 0.25 || *spine.Reserved != 10_000 {
		t.Errorf("leaf %+v, spine %+v", leaf, spine)
	}
	if leaf.ECN.Priorities.Bits() != 1<<3 || *leaf.Queues[1].Weight != 0 || *leaf.PFC.Send {
		t.Errorf("leaf %+v", leaf)
	}
}

func TestKnobsOfDCQCNChangeTheProfilesParametersAndNoOthers(t *testing.T) {
	s, err := read(t, everything)
	if err != nil {
		t.Fatal(err)
	}
	got, err := s.NICs.DCQCN.Params()
	if err != nil {
		t.Fatal(err)
	}
	paper, err := dcqcn.ProfileNamed("paper")
	if err != nil {
		t.Fatal(err)
	}
	want := paper.Params
	want.RPGTimeReset, want.RPGAIRate, want.ClampTgtRate = 300*time.Microsecond, 5*dcqcn.Mbps, false
	if *got != want {
		t.Errorf("%+v, want %+v", *got, want)
	}
	off := DCQCNSettings{Profile: DCQCNOff}
	if p, err := off.Params(); p != nil || err != nil {
		t.Errorf("off is %v, %v", p, err)
	}
}

func TestEveryKnobOfDCQCNCanBeSet(t *testing.T) {
	params, settings := reflect.TypeFor[dcqcn.Params](), reflect.TypeFor[DCQCNSettings]()
	for i := range params.NumField() {
		p := params.Field(i)
		s, ok := settings.FieldByName(p.Name)
		if !ok || s.Type != reflect.PointerTo(p.Type) || s.Tag.Get("yaml") != p.Tag.Get("yaml") {
			t.Errorf("%s: %v `%s`, want *%v `%s`", p.Name, s.Type, s.Tag, p.Type, p.Tag)
		}
	}
	if settings.NumField() != params.NumField()+1 {
		t.Errorf("%d settings for %d knobs", settings.NumField()-1, params.NumField())
	}
}

func TestWrongSettingsAreRefusedAtTheirPlace(t *testing.T) {
	for text, want := range map[string]string{
		"nics: {dcqcn: papr}":                                             `there is no DCQCN profile "papr"`,
		"nics: {dcqcn: {profile: paper, rpg_gd: 3}}":                      "rpg_gd",
		"nics: {dcqcn: {profile: off, rpg_gd: 11}}":                       "off leaves no knobs",
		"nics: {memory: fantom}":                                          "phantom",
		"nics: {pcie: {nic: x16}}":                                        "gen4 x16",
		"nics: {ack: {every: 4}}":                                         "ack.delay",
		"nics: {priorities: {64: 1}}":                                     "DSCP",
		"nics: {override: [{node: h1}]}":                                  "changes nothing",
		"nics: {override: [{memory: real}]}":                              "needs the node",
		"switches: {routing: adaptiv}":                                    "adaptive",
		"switches: {pfc: {priorities: [3, 3]}}":                           "priority 3 is there twice",
		"switches: {pfc: {priorities: [8]}}":                              "8 is not a priority from 0 to 7",
		"switches: {queues: [{priority: 3}, {priority: 3}]}":              "priority 3 is there twice",
		"nics: {max_unacked: -1}":                                         "max_unacked is -1",
		"nics: {pfc: {xoff: 40KB, xon: 80KB}}":                            "80KB is above xoff 40KB",
		"nics: {pfc: {headroom: 0}}":                                      "under way",
		"nics: {pcie: {nic: gen9 x16}}":                                   "no PCIe generation 9",
		"nics: {override: [{node: h1, pcie: {gpu: gen4 x5}}]}":            "5 lanes",
		"switches: {pfc: {xoff: 20KB, xon: 40KB}}":                        "40KB below xoff",
		"switches: {pfc: {headroom: 0B}}":                                 "under way",
		"switches: {pfc: {xoff: 1KB, alpha: 1/8}}":                        "give one of them",
		"switches: {alpha: 1/0}":                                          "no factor",
		"switches: {watchdog: {detect: 0s}}":                              "above 0",
		"switches: {ecn: {kmin: 2KB, kmax: 1KB, pmax: 1%}}":               "below kmax",
		"switches: {ecn: {kmin: 2KB, kmax: 3MiB, pmax: 1%}}":              "above the port's buffer",
		"switches: {queues: [{priority: 8}]}":                             "from 0 to 7",
		"switches: {flowlet_gap: 1us}":                                    "routing: flowlet",
		"switches: {override: [{node: leaf1, ecn: {kmin: 1KB, kmx: 1}}]}": "kmax",
	} {
		_, err := read(t, text)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "s.yaml:1:") {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

func TestAnOverrideOfANodeThatIsNotThereIsRefused(t *testing.T) {
	top, err := (&topo.Spec{Star: &topo.Star{Hosts: 2}}).Build()
	if err != nil {
		t.Fatal(err)
	}
	s, err := read(t, "nics: {override: [{node: h3, memory: real}]}\nswitches: {override: [{node: h1, buffer: 1MiB}]}")
	if err != nil {
		t.Fatal(err)
	}
	err = s.CheckNodes(top)
	if err == nil || !strings.Contains(err.Error(), `no host is called "h3"`) || !strings.Contains(err.Error(), `no switch is called "h1"`) {
		t.Errorf("%v", err)
	}
}

func TestAlphaIsWrittenAsAFactor(t *testing.T) {
	for text, want := range map[string]Alpha{"1/8": 0.125, "8": 8, "0.125": 0.125, "1/64": 1.0 / 64, "0": 0, "1024": 1024} {
		var a Alpha
		if err := a.UnmarshalText([]byte(text)); err != nil || a != want {
			t.Errorf("%q is %v (%v), want %v", text, a, err, want)
		}
	}
	for _, text := range []string{"", "x", "-1", "1/0", "0/0", "1025", "1/8/2", "nan"} {
		var a Alpha
		if err := a.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q is taken for %v", text, a)
		}
	}
}
