//go:build linux

package linux

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
)

func currentNetns() string {
	s, _ := os.Readlink("/proc/thread-self/ns/net")
	return s
}

func TestDoRunsInTheNamespaceAndTheThreadComesBack(t *testing.T) {
	_, w := wired(t, testName("do"), spineLeaf(t, 1, 1, 1))
	n := w.Node("leaf1")
	home := currentNetns()
	want := fmt.Sprintf("net:[%d]", n.inode)
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			if err := n.Do(func() error {
				if got := currentNetns(); got != want {
					return fmt.Errorf("inside is %s, expected %s", got, want)
				}
				return nil
			}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	tasks, err := filepath.Glob("/proc/self/task/*/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range tasks {
		if got, err := os.Readlink(p); err == nil && got != home {
			t.Errorf("%s is still %s, home is %s", p, got, home)
		}
	}
	oops := errors.New("oops")
	if err := n.Do(func() error { return oops }); !errors.Is(err, oops) {
		t.Errorf("an error inside came out as %v", err)
	}
}

func TestAPanicAndAFailedAssertionInsideDoSurfaceInTheCaller(t *testing.T) {
	_, w := wired(t, testName("panic"), spineLeaf(t, 1, 1, 1))
	n := w.Node("leaf1")
	func() {
		defer func() {
			if p := recover(); p != "boom" {
				t.Errorf("recovered %v", p)
			}
		}()
		_ = n.Do(func() error { panic("boom") })
	}()
	var cleaned, after bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() { cleaned = true }()
		_ = n.Do(func() error { runtime.Goexit(); return nil }) // what FailNow does
		after = true
	}()
	<-done
	if !cleaned || after {
		t.Errorf("the caller's deferred calls ran: %v; it went on: %v", cleaned, after)
	}
	if err := n.Do(func() error { return nil }); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}
