package testbed

import (
	"fmt"
	"reflect"
	"testing"
)

func TestAWarningOfManyQueuePairsIsSaidOnce(t *testing.T) {
	var all []string
	for qp := range 100 {
		all = append(all, fmt.Sprintf("h%d:eth0: QP %#x: RNR delay rounded", qp%8, 0x11+qp))
	}
	all = append(all, "leaf1: rate rounded", "h1:eth0: QP 0x11: timeout rounded")
	want := []string{"RNR delay rounded (100 queue pairs, the first h0:eth0: QP 0x11)", "leaf1: rate rounded", "h1:eth0: QP 0x11: timeout rounded"}
	if got := gather(all); !reflect.DeepEqual(got, want) {
		t.Errorf("got %q", got)
	}
}
