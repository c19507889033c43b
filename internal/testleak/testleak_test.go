package testleak

import (
	"strings"
	"testing"
	"time"
)

func TestMain(m *testing.M) { Main(m) }

func TestAGoroutineThatStaysIsLeaked(t *testing.T) {
	s := take()
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() { <-stop; close(stopped) }()
	expectLeak(t, s, "TestAGoroutineThatStaysIsLeaked")
	close(stop)
	<-stopped
	expectNone(t, s)
}

func TestAGoroutineThatReturnsInTimeIsNoLeak(t *testing.T) {
	s := take()
	stop := make(chan struct{})
	go func() { <-stop }()
	time.AfterFunc(100*time.Millisecond, func() { close(stop) })
	expectNone(t, s)
}

func expectLeak(t *testing.T, s snapshot, want string) {
	t.Helper()
	leaks := s.await(0)
	if !strings.Contains(strings.Join(leaks, "\n"), want) {
		t.Errorf("want a leak that mentions %q, found %q", want, leaks)
	}
}

func expectNone(t *testing.T, s snapshot) {
	t.Helper()
	if leaks := s.await(patience); len(leaks) > 0 {
		t.Errorf("want nothing left behind, found %q", leaks)
	}
}
