//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rocebed/rocebed/internal/testneed"
	"github.com/rocebed/rocebed/testbed/linux"
)

// listed is what status --json says of one testbed among all that there are.
func listed(t *testing.T, name string) (e entry) {
	t.Helper()
	code, out, errs := invoke(t, "status", "--json")
	var all []entry
	if err := json.Unmarshal([]byte(out), &all); code != 0 || err != nil {
		t.Fatalf("exit code %d, %v, %q %q", code, err, out, errs)
	}
	i := slices.IndexFunc(all, func(e entry) bool { return e.Testbed == name })
	if i < 0 {
		t.Fatalf("testbed %s isn't in %q", name, out)
	}
	return all[i]
}

// oneIs asks for a testbed by its name, in both ways.
func oneIs(t *testing.T, name, state string, code int, says string) {
	t.Helper()
	got, out, errs := invoke(t, "status", name)
	if got != code || code != 0 && (out != "" || !strings.Contains(errs, says)) {
		t.Errorf("%s: exit code %d, want %d, %q %q", state, got, code, out, errs)
	}
	got, out, errs = invoke(t, "status", "--json", name)
	var e entry
	if err := json.Unmarshal([]byte(out), &e); err != nil || got != code || e.Testbed != name || e.State != state || !strings.Contains(e.Error, says) {
		t.Errorf("%s: exit code %d, want %d, %v, %q %q", state, got, code, err, out, errs)
	}
}

func TestATestbedThatARunHasIsListedAndNotUp(t *testing.T) {
	testneed.Root(t)
	name := fmt.Sprintf("s%d-busy", os.Getpid())
	run, err := linux.Acquire(t.Context(), name) // as a run does
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := run.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	code, out, errs := invoke(t, "status") // also where it is the only one there is
	if code != 0 || !strings.Contains(out, "\n"+name+"  ") || !strings.Contains(out, "  busy  ") || !strings.Contains(out, fmt.Sprintf("process %d holds it, for a run", os.Getpid())) {
		t.Errorf("exit code %d, %q %q", code, out, errs)
	}
	if e := listed(t, name); e.State != stateBusy || e.Keeper != os.Getpid() || e.Error == "" {
		t.Errorf("%+v", e)
	}
	oneIs(t, name, stateBusy, 1, "for a run")
}

func TestATestbedWhoseKeeperWasKilledIsDead(t *testing.T) {
	name := fmt.Sprintf("s%d-dead", os.Getpid())
	st := upOnSoft(t, name)
	oneIs(t, name, stateUp, 0, "")
	if err := unix.Kill(st.Keeper, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_, _ = unix.Wait4(st.Keeper, nil, 0, nil) // until then it is living
	code, out, errs := invoke(t, "status")
	if code != 0 || !strings.Contains(out, "\n"+name+"  ") || !strings.Contains(out, "testbed "+name+": its keeper is dead ('rocebed clean' removes what it left)") {
		t.Errorf("exit code %d, %q %q", code, out, errs)
	}
	if e := listed(t, name); e.State != stateDead || e.Keeper != 0 {
		t.Errorf("%+v", e)
	}
	oneIs(t, name, stateDead, 1, "rocebed clean")
}

func TestDoctorWarnsOfATestbedThatDied(t *testing.T) {
	name := fmt.Sprintf("d%d-dead", os.Getpid())
	st := upOnSoft(t, name)
	dead := func() (r remain, found bool) {
		_, out, errs := invoke(t, "doctor", "--json")
		var d diagnosis
		if err := json.Unmarshal([]byte(out), &d); err != nil || d.Dead == nil {
			t.Fatalf("%v, %q %q", err, out, errs)
		}
		i := slices.IndexFunc(d.Dead, func(r remain) bool { return r.Testbed == name })
		if i < 0 {
			return r, false
		}
		return d.Dead[i], true
	}
	if r, found := dead(); found {
		t.Errorf("a testbed that is up: %+v", r)
	}
	if err := unix.Kill(st.Keeper, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_, _ = unix.Wait4(st.Keeper, nil, 0, nil) // until then it is living
	if r, found := dead(); !found || r.Left == 0 || r.Get != "rocebed clean "+name {
		t.Errorf("its keeper is dead: found %v, %+v", found, r)
	}
	if _, out, _ := invoke(t, "doctor"); !strings.Contains(out, "  "+name+"  DEAD ") || !strings.Contains(out, "get:  rocebed clean "+name+"\n") {
		t.Errorf("doctor said %s", out)
	}
	if code, _, errs := invoke(t, "clean", name); code != 0 {
		t.Errorf("clean: exit code %d, %q", code, errs)
	}
	if r, found := dead(); found {
		t.Errorf("it was cleaned: %+v", r)
	}
}
