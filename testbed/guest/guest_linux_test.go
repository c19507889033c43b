package guest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rocebed/rocebed/internal/testleak"
)

// The tests that call needGuest boot real guests: they run with ROCEBED_GUEST_TESTS=1, as
// `make test` sets it. What is missing on the machine is then a failure, not a skip.
//
// The test binary itself is the guests' init, and the helper processes.

const helperEnv = "ROCEBED_TEST_HELPER"

func TestMain(m *testing.M) {
	InitIfAsked()
	if helper := helpers[os.Getenv(helperEnv)]; helper != nil {
		os.Exit(helper())
	}
	testleak.Main(m)
}

const echoSocket = "/run/echo"

var helpers = map[string]func() int{
	// echo, in a guest, gives one connection its own words back.
	"echo": func() int {
		l, err := net.Listen("unix", echoSocket)
		if err != nil {
			fmt.Println(err)
			return 3
		}
		fmt.Println("listening")
		conn, err := l.Accept()
		if err != nil {
			return 4
		}
		if _, err := io.Copy(conn, conn); err != nil {
			return 5
		}
		return 0
	},
	// keys, in a guest, says which parts of the packet path are on.
	"keys": func() int {
		if err := printKeys(); err != nil {
			fmt.Println(err)
			return 3
		}
		return 0
	},
	// keeper boots a guest, says its VMM's process id, and waits to be killed.
	"keeper": func() int {
		g, err := Boot(context.Background(), Config{})
		if err != nil {
			fmt.Println(err)
			return 3
		}
		fmt.Println("pid", g.PID())
		<-g.Done()
		return 1
	},
	// attach runs a command attached to this process's streams.
	"attach": func() int {
		g, err := Boot(context.Background(), Config{})
		if err != nil {
			fmt.Println(err)
			return 3
		}
		defer g.Close()
		fmt.Println("booted")
		st, err := g.Attach(context.Background(), Cmd{Argv: []string{"bash", "-c", os.Getenv("SCRIPT")}})
		if err != nil {
			fmt.Println(err)
			return 3
		}
		return st.Code
	},
}

func needGuest(t *testing.T) {
	t.Helper()
	if os.Getenv("ROCEBED_GUEST_TESTS") == "" {
		t.Skip("boots real guests: set ROCEBED_GUEST_TESTS=1 (make test does)")
	}
}

func boot(t *testing.T, cfg Config) *Guest {
	t.Helper()
	needGuest(t)
	cfg.Progress = func(s string) { t.Log(s) }
	g, err := Boot(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.Close() })
	return g
}

// sh runs a script and returns its exit code and both its outputs.
func sh(t *testing.T, g *Guest, script string) (int, string, string) {
	t.Helper()
	var out, errOut bytes.Buffer
	code, err := g.Run(t.Context(), Cmd{Argv: []string{"bash", "-c", script}, Stdout: &out, Stderr: &errOut})
	if err != nil {
		t.Fatalf("%s: %v", script, err)
	}
	return code, out.String(), errOut.String()
}

// helper starts this binary as one of the helpers.
func helper(t *testing.T, name, script string) (*exec.Cmd, io.Reader) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), helperEnv+"="+name, "SCRIPT="+script)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	return cmd, out
}

// firstLine reads one line, byte by byte so as not to take more.
func firstLine(t *testing.T, r io.Reader) string {
	t.Helper()
	var line []byte
	b := make([]byte, 1)
	for {
		if _, err := r.Read(b); err != nil {
			t.Fatalf("after %q: %v", line, err)
		}
		if b[0] == '\n' {
			return string(line)
		}
		line = append(line, b[0])
	}
}

// alive tells whether a process is there and not only waiting to be buried.
func alive(pid int) bool {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(raw), ") ")
	return !strings.HasPrefix(rest, "Z")
}

// within waits for a condition, and says what was last seen where it does not come.
func within(t *testing.T, limit time.Duration, done func() bool, seen func() string) {
	t.Helper()
	deadline := time.Now().Add(limit)
	for !done() {
		if time.Now().After(deadline) {
			t.Fatalf("not within %v; last seen: %s", limit, seen())
		}
		<-time.After(20 * time.Millisecond)
	}
}

type countingWriter int

func (w *countingWriter) Write(p []byte) (int, error) {
	*w += countingWriter(len(p))
	return len(p), nil
}

// safeBuffer can be read while it is written; onWrite is called with each write.
type safeBuffer struct {
	mu      sync.Mutex
	b       bytes.Buffer
	onWrite func()
}

func (s *safeBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.onWrite != nil {
		s.onWrite()
	}
	return s.b.Write(p)
}

func (s *safeBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// neverReader has no input until its context ends.
type neverReader struct{ ctx context.Context }

func (r neverReader) Read([]byte) (int, error) { <-r.ctx.Done(); return 0, io.EOF }
