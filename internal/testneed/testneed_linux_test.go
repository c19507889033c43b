package testneed

import "testing"

func TestKernelReleasesCompareByTheirNumbers(t *testing.T) {
	for release, want := range map[string]bool{
		"7.1.0": true, "7.3.4+deb13-amd64": true, "7.10": true, "8.0-rc1": true, "7.1-rc3": true,
		"7.0.9": false, "6.18.5": false, "6.99": false,
	} {
		if got := atLeast(release, 7, 1); got != want {
			t.Errorf("%s is at least 7.1: %v, want %v", release, got, want)
		}
	}
}

// sink records what a need does to a test.
type sink struct {
	testing.TB
	skipped, failed bool
}

func (s *sink) Helper()               {}
func (s *sink) Skipf(string, ...any)  { s.skipped = true }
func (s *sink) Fatalf(string, ...any) { s.failed = true }

func TestAMissingNeedSkipsOrFailsAsTold(t *testing.T) {
	t.Setenv(MustRun, "")
	var s sink
	if miss(&s, "x", "y"); !s.skipped || s.failed {
		t.Errorf("not told that it must run: %+v, want a skip", s)
	}
	t.Setenv(MustRun, "1")
	s = sink{}
	if miss(&s, "x", "y"); s.skipped || !s.failed {
		t.Errorf("told that it must run: %+v, want a failure", s)
	}
}
