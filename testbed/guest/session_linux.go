package guest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/sys/unix"
)

const guestPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// session is one program that the machine asked for.
type session struct {
	pid    int
	status <-chan syscall.WaitStatus
	stdin  *os.File
	// outputs are the read ends of the program's output; with a terminal, its master.
	outputs []*os.File
	pty     *os.File
}

func (g *guestSystem) acceptRun(c ssh.NewChannel) error {
	var spec runSpec
	if err := json.Unmarshal(c.ExtraData(), &spec); err != nil {
		return err
	}
	<-g.ready
	s, err := g.startSession(&spec)
	if err != nil {
		return err
	}
	ch, requests, err := c.Accept()
	if err != nil {
		_ = unix.Kill(-s.pid, unix.SIGKILL)
		s.close()
		return nil
	}
	s.serve(ch, requests)
	return nil
}

// startSession starts the program in a session and process group of its own.
func (g *guestSystem) startSession(spec *runSpec) (*session, error) {
	if len(spec.Argv) == 0 {
		return nil, errors.New("no program named")
	}
	env := environment(spec)
	dir := spec.Dir
	if dir == "" {
		dir = "/root"
	}
	path, err := lookPath(spec.Argv[0], dir, env)
	if err != nil {
		return nil, err
	}
	s := &session{}
	attr := &syscall.ProcAttr{Dir: dir, Env: env, Sys: &syscall.SysProcAttr{Setsid: true}}
	var theirs []*os.File
	if spec.Pty != nil {
		theirs, err = s.terminal(spec.Pty)
		attr.Sys.Setctty = true
	} else {
		theirs, err = s.pipes()
	}
	if err == nil {
		for _, f := range theirs {
			// The program expects what every program gets: descriptors that block.
			if err = errors.Join(err, unix.SetNonblock(int(f.Fd()), false)); err != nil {
				break
			}
			attr.Files = append(attr.Files, f.Fd())
		}
	}
	if err == nil {
		s.pid, s.status, err = g.reaper.start(path, spec.Argv, attr)
	}
	for _, f := range theirs {
		f.Close()
	}
	if err != nil {
		s.close()
		return nil, fmt.Errorf("%s: %w", spec.Argv[0], err)
	}
	return s, nil
}

// pipes makes the three pipes and returns the program's ends.
func (s *session) pipes() ([]*os.File, error) {
	var theirs []*os.File
	for i := range 3 {
		r, w, err := os.Pipe()
		if err != nil {
			return theirs, err
		}
		if i == 0 {
			s.stdin = w
			theirs = append(theirs, r)
			continue
		}
		s.outputs = append(s.outputs, r)
		theirs = append(theirs, w)
	}
	return theirs, nil
}

// terminal makes a pseudo terminal and returns the program's end, three times.
func (s *session) terminal(p *Pty) ([]*os.File, error) {
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, err
	}
	s.pty, s.stdin, s.outputs = master, master, []*os.File{master}
	raw, err := master.SyscallConn()
	if err != nil {
		return nil, err
	}
	var number int
	var failed error
	if err := raw.Control(func(fd uintptr) {
		if failed = unix.IoctlSetPointerInt(int(fd), unix.TIOCSPTLCK, 0); failed == nil {
			number, failed = unix.IoctlGetInt(int(fd), unix.TIOCGPTN)
		}
	}); err != nil || failed != nil {
		return nil, fmt.Errorf("terminal: %w", errors.Join(err, failed))
	}
	if err := s.resize(p.Rows, p.Cols); err != nil {
		return nil, err
	}
	slave := fmt.Sprintf("/dev/pts/%d", number)
	var theirs []*os.File
	for range 3 {
		f, err := os.OpenFile(slave, os.O_RDWR|unix.O_NOCTTY, 0)
		if err != nil {
			return theirs, err
		}
		theirs = append(theirs, f)
	}
	return theirs, nil
}

func (s *session) resize(rows, cols int) error {
	if s.pty == nil {
		return nil
	}
	raw, err := s.pty.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		failed = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Row: uint16(rows), Col: uint16(cols)})
	})
	return errors.Join(err, failed)
}

func (s *session) close() {
	if s.stdin != nil {
		s.stdin.Close()
	}
	for _, f := range s.outputs {
		f.Close()
	}
}

// serve carries input, output, signals and the exit status until the program has ended.
func (s *session) serve(ch ssh.Channel, requests <-chan *ssh.Request) {
	defer ch.Close()
	gone := make(chan struct{}) // the machine has let go of the channel
	go func() {
		defer close(gone)
		s.requests(requests)
	}()
	go func() {
		_, _ = io.Copy(s.stdin, ch)
		if s.pty != nil {
			_, _ = s.stdin.Write([]byte{4}) // end of file, as a terminal has it
			return
		}
		s.stdin.Close()
	}()
	ended := make(chan struct{})
	var copied []chan struct{}
	for i, f := range s.outputs {
		w := io.Writer(ch)
		if i == 1 {
			w = ch.Stderr()
		}
		done := make(chan struct{})
		copied = append(copied, done)
		go func() {
			defer close(done)
			drain(w, f, ended)
		}()
	}
	status := s.wait(gone)
	close(ended)
	for _, done := range copied {
		<-done
	}
	s.close()
	if status.Signaled() {
		_, _ = ch.SendRequest("exit-signal", false, ssh.Marshal(exitSignalMsg{Name: signalName(int(status.Signal()))}))
		return
	}
	_, _ = ch.SendRequest("exit-status", false, ssh.Marshal(exitStatusMsg{uint32(status.ExitStatus())}))
}

// wait waits for the program's end. One whose machine has let go is hung up, then killed.
func (s *session) wait(gone <-chan struct{}) syscall.WaitStatus {
	select {
	case st := <-s.status:
		return st
	case <-gone:
	}
	_ = unix.Kill(-s.pid, unix.SIGHUP)
	select {
	case st := <-s.status:
		return st
	case <-time.After(2 * time.Second):
	}
	_ = unix.Kill(-s.pid, unix.SIGKILL)
	return <-s.status
}

func (s *session) requests(requests <-chan *ssh.Request) {
	for req := range requests {
		ok := true
		switch req.Type {
		case "signal":
			var m signalMsg
			n := 0
			if ssh.Unmarshal(req.Payload, &m) == nil {
				n = signalNumber(m.Name)
			}
			ok = n != 0 && unix.Kill(-s.pid, unix.Signal(n)) == nil
		case "window-change":
			var m windowChange
			ok = ssh.Unmarshal(req.Payload, &m) == nil && s.resize(int(m.Rows), int(m.Cols)) == nil
		default:
			ok = false
		}
		if req.WantReply {
			_ = req.Reply(ok, nil)
		}
	}
}

// pipeCapacity is how much a pipe holds: what a program wrote before its end is within
// so much of what is read after it.
const pipeCapacity = 64 << 10

// drain passes output on to its end: to the end of file or, since children in the
// background may hold the pipe open for ever, to the last of what the program itself
// had written when it ended.
func drain(w io.Writer, r *os.File, ended <-chan struct{}) {
	go func() {
		<-ended
		_ = r.SetReadDeadline(time.Unix(1, 0)) // wakes a read that waits
	}()
	buf := make([]byte, 32<<10)
	for {
		n, err := r.Read(buf)
		if n > 0 {
			if _, err := w.Write(buf[:n]); err != nil {
				return
			}
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			break
		}
		if err != nil {
			return
		}
	}
	raw, err := r.SyscallConn()
	if err != nil {
		return
	}
	for left := pipeCapacity; left > 0; {
		n := 0
		// Not through Read: past its deadline it doesn't even look.
		if raw.Control(func(fd uintptr) { n, err = unix.Read(int(fd), buf) }) != nil || err != nil || n <= 0 {
			return
		}
		if _, err := w.Write(buf[:n]); err != nil {
			return
		}
		left -= n
	}
}

func environment(spec *runSpec) []string {
	env := []string{"PATH=" + guestPath, "HOME=/root", "USER=root", "LOGNAME=root", "SHELL=/bin/bash", "LANG=C.UTF-8", "ROCEBED_GUEST=1"}
	if spec.Pty != nil && spec.Pty.Term != "" {
		env = append(env, "TERM="+spec.Pty.Term)
	}
	return append(env, spec.Env...)
}

// lookPath finds a program as a shell with that environment would.
func lookPath(name, dir string, env []string) (string, error) {
	if strings.Contains(name, "/") {
		path := name
		if !filepath.IsAbs(path) {
			path = filepath.Join(dir, path)
		}
		_, err := os.Stat(path)
		return path, err
	}
	path := guestPath
	for _, e := range env {
		if v, ok := strings.CutPrefix(e, "PATH="); ok {
			path = v
		}
	}
	for _, d := range filepath.SplitList(path) {
		p := filepath.Join(d, name)
		if st, err := os.Stat(p); err == nil && st.Mode().IsRegular() && st.Mode()&0o111 != 0 {
			return p, nil
		}
	}
	return "", fmt.Errorf("%s: not found in the guest's PATH", name)
}
