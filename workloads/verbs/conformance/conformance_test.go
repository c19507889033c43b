package conformance

import (
	"testing"

	"github.com/rocebed/rocebed/internal/testleak"
)

func TestMain(m *testing.M) { testleak.Main(m) }

func TestEveryCaseHasANameOfItsOwn(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range Cases() {
		if c.Name == "" || c.run == nil || seen[c.Name] {
			t.Errorf("case %q is nameless, empty or there twice", c.Name)
		}
		seen[c.Name] = true
	}
}

func TestSomeCasesTurnOnTimersAndSomeOnTheNetwork(t *testing.T) {
	timers, network := 0, 0
	for _, c := range Cases() {
		if c.Timers {
			timers++
		}
		if c.Network {
			network++
		}
	}
	if all := len(Cases()); timers < 5 || network < 8 || timers+network > all/2 {
		t.Errorf("%d and %d of %d cases", timers, network, all)
	}
}

func TestShapesCutAMessageWithoutLossIntoAtMostEightPieces(t *testing.T) {
	for _, mtu := range []int{256, 1024, 4096} {
		for _, n := range sizes(mtu) {
			for _, sh := range shapes {
				sum := 0
				cut := sh.cut(n)
				for _, p := range cut {
					if p < 0 {
						t.Fatalf("%s of %d: %v", sh.name, n, cut)
					}
					sum += p
				}
				if sum != n || len(cut) > 8 {
					t.Errorf("%s of %d: %v", sh.name, n, cut)
				}
			}
		}
	}
}

func TestMessagesFitTheRegionWithTheirGuards(t *testing.T) {
	for _, mtu := range []int{256, 512, 1024, 2048, 4096} {
		for _, n := range sizes(mtu) {
			if 70000+n*13%1009+n+13+8*8 > markerOff {
				t.Errorf("%d bytes do not fit", n)
			}
		}
	}
}

func TestRxesDeparturesAreNamedOnceAndSourced(t *testing.T) {
	seen := map[string]bool{}
	for _, d := range Rxe {
		if d.ID == "" || d.Spec == "" || d.Actual == "" || d.Source == "" || seen[d.ID] {
			t.Errorf("departure %+v lacks something or is there twice", d)
		}
		seen[d.ID] = true
	}
}

// recorder is a T that keeps what is said.
type recorder struct {
	T
	errors int
}

func (r *recorder) Helper()               {}
func (r *recorder) Errorf(string, ...any) { r.errors++ }

func TestADepartureThatNoCaseHasComeByIsAnErrorOfTheDeviceThatDeclaresIt(t *testing.T) {
	departing := Endpoint{Departures: Rxe[:2]}
	suite := func(a, b Endpoint) *Suite { return &Suite{ends: [2]Endpoint{a, b}, departed: map[string]bool{}} }
	one, other := suite(departing, Endpoint{}), suite(Endpoint{}, departing)
	a, b := &half{suite: one, end: one.ends[0]}, &half{suite: one, end: one.ends[1]}
	if !a.departs(Rxe[0].ID) || a.departs(Rxe[2].ID) || b.departs(Rxe[1].ID) {
		t.Error("departs says yes to what is not declared, or no to what is")
	}
	r := &recorder{}
	if CheckDepartures(r, one, other); r.errors != 1 {
		t.Errorf("%d errors for one departure that was not seen", r.errors)
	}
	b = &half{suite: other, end: other.ends[1]}
	b.departs(Rxe[1].ID)
	r = &recorder{}
	if CheckDepartures(r, one, other); r.errors != 0 {
		t.Errorf("%d errors, though one suite or the other has seen both departures", r.errors)
	}
}
