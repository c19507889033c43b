package testbed

import (
	"errors"
	"fmt"
	"testing"

	"github.com/rocebed/rocebed/testbed/fabric"
	"github.com/rocebed/rocebed/testbed/record"
)

func TestAMachineThatDidNotKeepUpFailsTheRunUnlessOnlyPortsWereSlowAndThatIsAllowed(t *testing.T) {
	slow := fmt.Errorf("leaf1:eth3: %w", fabric.ErrSlow)
	for _, c := range []struct {
		err                error
		allow              bool
		problems, warnings int
	}{
		{nil, false, 0, 0}, {slow, false, 1, 0}, {slow, true, 0, 1}, {errors.New("packets were dropped"), true, 1, 0},
	} {
		rec, err := record.Create(t.TempDir()+"/r", record.Manifest{})
		if err != nil {
			t.Fatal(err)
		}
		r := &run{opt: RunOptions{AllowSlow: c.allow}, rec: rec}
		r.judgeKeepUp(c.err)
		rec.Abandon()
		if len(r.problems) != c.problems || len(r.warnings) != c.warnings {
			t.Errorf("%v, allowed %v: problems %q, warnings %q", c.err, c.allow, r.problems, r.warnings)
		}
	}
}
