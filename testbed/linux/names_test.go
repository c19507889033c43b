//go:build linux

package linux

import (
	"strings"
	"testing"
)

func TestNoTwoTestbedsSpellTheSameNamespace(t *testing.T) {
	long := strings.Repeat("x", 80)
	pairs := [][2]string{{"a", "b-c"}, {"a-b", "c"}, {"a", "b.c"}, {"a", "b/c"}, {"a", "b_c"}, {"a", "b c"}, {"a", long}, {"a", long + "y"}, {"a", long[1:]}}
	seen := map[string][2]string{}
	for _, p := range pairs {
		n := NamespaceName(p[0], p[1])
		if was, dup := seen[n]; dup {
			t.Errorf("%q and %q are both called %s", was, p, n)
		}
		seen[n] = p
		if len(n) > maxNamespaceName || strings.ContainsAny(n, "/ \x00") {
			t.Errorf("%q: %q is no name for a namespace", p, n)
		}
	}
	if n := NamespaceName("demo", "leaf1"); n != "rb-demo.leaf1" {
		t.Errorf("leaf1 of demo is called %q", n)
	}
}

func TestATestbedNameThatCouldLeaveItsFolderIsRefused(t *testing.T) {
	for _, bad := range []string{"", ".", "..", "a/b", "a.b", "-a", "a b", strings.Repeat("a", 64), "ä"} {
		if CheckName(bad) == nil {
			t.Errorf("%q was taken", bad)
		}
	}
	for _, good := range []string{"a", "demo-1", "A_b", strings.Repeat("a", 63)} {
		if err := CheckName(good); err != nil {
			t.Error(err)
		}
	}
}

func TestALinkIsCalledLikeItsPortWhereTheKernelTakesIt(t *testing.T) {
	if n := LinkName("eth0"); n != "eth0" {
		t.Errorf("eth0 is called %q", n)
	}
	a, b := LinkName("a-port-with-a-long-name-1"), LinkName("a-port-with-a-long-name-2")
	if a == b || len(a) > 15 || len(b) > 15 || !strings.HasPrefix(a, "a-port-") {
		t.Errorf("long names became %q and %q", a, b)
	}
	for _, bad := range []string{"a/b", "a:b", "a b", "eth%d"} {
		if n := LinkName(bad); strings.ContainsAny(n, "/: %") || len(n) > 15 {
			t.Errorf("%q became %q", bad, n)
		}
	}
}
