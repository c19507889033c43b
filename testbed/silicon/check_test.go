package silicon

import (
	"errors"
	"testing"

	"github.com/rocebed/rocebed/testbed/fabric"
	"github.com/rocebed/rocebed/topo"
	"github.com/rocebed/rocebed/topo/strict"
)

func TestWhatAProfileDoesNotTakeIsSaidAtTheKeyThatGivesIt(t *testing.T) {
	small, large := topo.Bytes(10_000), topo.Bytes(900_000_000)
	for path, m := range map[string]fabric.NICModel{
		"nics.pfc.xon":     {PFC: &fabric.NICPFCSettings{XON: &large}},
		"nics.pfc.xoff":    {PFC: &fabric.NICPFCSettings{XOFF: &small}}, // the profile's XON is above it
		"nics.max_unacked": {MaxUnacked: 1 << 23},
		"nics.recovery":    {Recovery: "none"},
		"nics.pcie":        {PCIe: &fabric.PCIeSettings{NIC: topo.PCIeLink{Gen: 9, Width: 16}}},
	} {
		err := CheckNICs(&fabric.NICSettings{NICModel: m})
		var at *strict.PathError
		if !errors.As(err, &at) || at.Path != path {
			t.Errorf("%s: %v", path, err)
		}
	}
}
