package silicon

import (
	"strings"
	"testing"
	"time"

	"github.com/rocebed/rocebed/datapath/rnic"
	"github.com/rocebed/rocebed/topo"
)

func TestAStormsFramesFollowFromTwoOfDutyFrequencyAndQuanta(t *testing.T) {
	// At 100 Gb/s a quantum is 5.12 ns, and 65535 of them 335.5 us.
	for text, want := range map[string]rnic.Storm{
		"":                              {Priorities: 8, Quanta: 65535},
		"duty: 100%":                    {Priorities: 8, Quanta: 65535},
		"priorities: [1, 2]":            {Priorities: 6, Quanta: 65535},
		"quanta: 1000":                  {Priorities: 8, Quanta: 1000},
		"frequency: 10/ms":              {Priorities: 8, Quanta: 65535, Every: 100 * time.Microsecond},
		"frequency: 10/ms, quanta: 10":  {Priorities: 8, Quanta: 10, Every: 100 * time.Microsecond},
		"duty: 50%, quanta: 1000":       {Priorities: 8, Quanta: 1000, Every: 10240 * time.Nanosecond},
		"frequency: 10/ms, duty: 51.2%": {Priorities: 8, Quanta: 10000, Every: 100 * time.Microsecond},
		"frequency: 10/ms, duty: 100%":  {Priorities: 8, Quanta: 19532, Every: 100 * time.Microsecond},
	} {
		s := spec(t, "kind: pfc-storm, at: ['h1:eth0'], "+text)
		if got, err := stormOf(&s, 100*topo.Gbps); err != nil || got != want {
			t.Errorf("%q is %+v, %v, not %+v", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"frequency: 1/ms, duty: 50%":              "more frames are needed",
		"frequency: 10/ms, duty: 50%, quanta: 10": "two of the three",
		"frequency: 1000000/ms":                   "can't come every 1ns",
	} {
		s := spec(t, "kind: pfc-storm, at: ['h1:eth0'], "+text)
		if _, err := stormOf(&s, 100*topo.Gbps); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}
