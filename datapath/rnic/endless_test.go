package rnic

import (
	"testing"

	"github.com/rocebed/rocebed/workloads/verbs"
)

func TestARetryCountOfSevenIsForEverWhereTheProfileSaysSo(t *testing.T) {
	for _, forEver := range []bool{false, true} {
		l := profiled(func(_ int, p *Profile) { p.EndlessRetry = forEver })
		e := l.pairOf(t, verbs.RC, 1<<20, func(_ int, _ *verbs.QPInit, a *verbs.QPAttr) { a.RetryCnt, a.Timeout = 7, 5 })
		e[0].SetLink(false)
		stream(t, e, 1)
		l.until(l.v.Now().Add(50 * verbs.AckTimeout(5)))
		c := e[0].Counters()
		if gaveUp := c.RetryExceeded > 0; gaveUp == forEver {
			t.Errorf("endless %v: after 50 timeouts %d queue pairs have given up, after %d retries", forEver, c.RetryExceeded, c.Retries)
		}
	}
}
