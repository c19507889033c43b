package topo

import (
	"math"
	"testing"
	"testing/quick"
)

func TestUnitsSurviveBeingWrittenAndRead(t *testing.T) {
	rate := func(n uint64) bool {
		want := Rate(n % 1e15) // a petabit a second; beyond 2⁵³ a float can't tell numbers apart
		got, err := ParseRate(want.String())
		return err == nil && got == want
	}
	bytes := func(n uint64) bool {
		want := Bytes(n % 1e15)
		got, err := ParseBytes(want.String())
		return err == nil && got == want
	}
	fraction := func(n uint32) bool {
		want := Fraction(float64(n%1_000_001) / 1e6)
		got, err := ParseFraction(want.String())
		return err == nil && math.Abs(float64(got-want)) < 1e-12
	}
	mac := func(m MAC) bool {
		text, _ := m.MarshalText()
		var got MAC
		return got.UnmarshalText(text) == nil && got == m
	}
	for name, f := range map[string]any{"rate": rate, "bytes": bytes, "fraction": fraction, "MAC": mac} {
		if err := quick.Check(f, nil); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestUnitsAreReadAsPeopleWriteThem(t *testing.T) {
	for text, want := range map[string]Rate{"100Gbps": 100e9, "2.5 Gbps": 25e8, "98Mbps": 98e6, "1Kbps": 1000, "8bps": 8, "1.6Tbps": 16e11} {
		if got, err := ParseRate(text); err != nil || got != want {
			t.Errorf("%s: %d, %v", text, got, err)
		}
	}
	for text, want := range map[string]Bytes{"64KiB": 65536, "4MB": 4e6, "9000": 9000, "9000B": 9000, "1.5 KiB": 1536} {
		if got, err := ParseBytes(text); err != nil || got != want {
			t.Errorf("%s: %d, %v", text, got, err)
		}
	}
	for text, want := range map[string]Fraction{"1%": 0.01, "0.01": 0.01, "100%": 1, "0": 0, "0.5 %": 0.005} {
		if got, err := ParseFraction(text); err != nil || math.Abs(float64(got-want)) > 1e-15 {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "100", "Gbps", "-1Gbps", "100gbps", "100Gb", "infGbps", "nanMbps", "1e30Gbps"} {
		if got, err := ParseRate(text); err == nil {
			t.Errorf("%q passed as the rate %s", text, got)
		}
	}
	for _, text := range []string{"", "64kib", "-1", "-1KiB", "1.5", "1e40MB"} {
		if got, err := ParseBytes(text); err == nil {
			t.Errorf("%q passed as the size %s", text, got)
		}
	}
	for _, text := range []string{"", "%", "101%", "-1%", "1.5", "nan", "1e400"} {
		if got, err := ParseFraction(text); err == nil {
			t.Errorf("%q passed as the share %s", text, got)
		}
	}
}

func TestNamesSortAsPeopleDo(t *testing.T) {
	order := []string{"eth0", "eth01", "eth1", "eth2", "eth10", "h1", "h2", "h10", "leaf1r0", "leaf1r10", "leaf2r0"}
	for i, a := range order {
		for j, b := range order {
			want := 0
			switch {
			case i < j:
				want = -1
			case i > j:
				want = 1
			}
			if got := CompareNames(a, b); got != want {
				t.Errorf("%s and %s compare as %d", a, b, got)
			}
		}
	}
	antisymmetric := func(a, b string) bool { return CompareNames(a, b) == -CompareNames(b, a) }
	if err := quick.Check(antisymmetric, nil); err != nil {
		t.Error(err)
	}
}
