package guest

import (
	"bytes"
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// join shares g over a unix socket and joins it from the other end, as another process would.
func join(t *testing.T, g *Guest) *Guest {
	t.Helper()
	path := filepath.Join(t.TempDir(), "guest.sock")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	shared := make(chan error, 1)
	go func() {
		c, err := l.Accept()
		l.Close()
		if err == nil {
			err = g.Share(c)
			c.Close()
		}
		shared <- err
	}()
	c, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	joined, err := Join(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := joined.Close(); err != nil {
			t.Error(err)
		}
		if err := <-shared; err != nil {
			t.Errorf("sharing ended with %v", err)
		}
	})
	return joined
}

func TestAnotherProcessUsesAGuestThatOneHolds(t *testing.T) {
	needGuest(t)
	g := boot(t, Config{})
	ctx := context.Background()

	j := join(t, g)
	code, out, errs := sh(t, j, `echo out; echo err >&2; exit 42`)
	if code != 42 || out != "out\n" || errs != "err\n" {
		t.Errorf("exit code %d, stdout %q, stderr %q", code, out, errs)
	}
	big := strings.Repeat("0123456789abcdef", 1<<16)
	var echoed bytes.Buffer
	if code, err := j.Run(ctx, Cmd{Argv: []string{"cat"}, Stdin: strings.NewReader(big), Stdout: &echoed}); code != 0 || err != nil || echoed.String() != big {
		t.Errorf("cat of %d bytes: exit code %d, error %v, %d bytes back", len(big), code, err, echoed.Len())
	}
	p, err := j.Start(ctx, Cmd{Argv: []string{"sleep", "1000"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Signal("TERM"); err != nil {
		t.Error(err)
	}
	if st, err := p.Wait(ctx); err != nil || st.Signal != "TERM" {
		t.Errorf("after TERM: %+v, %v", st, err)
	}
	if _, err := j.Run(ctx, Cmd{Argv: []string{"no-such-program"}}); err == nil || !strings.Contains(err.Error(), "no-such-program") {
		t.Errorf("a program that isn't there: %v", err)
	}
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "file"), []byte("content"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := j.ShipDir(ctx, folder, "/x/shipped"); err != nil {
		t.Error(err)
	}
	if _, out, _ := sh(t, j, "cat /x/shipped/file"); out != "content" {
		t.Errorf("shipped %q", out)
	}

	// Who goes away takes what it runs along, and leaves the guest.
	other := join(t, g)
	if _, err := other.Start(ctx, Cmd{Argv: []string{"sleep", "4242"}}); err != nil {
		t.Fatal(err)
	}
	_ = other.Close()
	within(t, 20*time.Second, func() bool { _, out, _ := sh(t, j, "pgrep -f 'sleep [4]242'"); return out == "" }, func() string { return "sleep still runs" })
	if j.Err() != nil || g.Err() != nil {
		t.Errorf("the guest ended: %v, %v", j.Err(), g.Err())
	}

	// The guest's end ends those who joined.
	p, err = j.Start(ctx, Cmd{Argv: []string{"sleep", "1000"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Close(); err != nil {
		t.Error(err)
	}
	if _, err := p.Wait(ctx); !errors.Is(err, ErrDied) {
		t.Errorf("a program in a guest that ended: %v", err)
	}
}
