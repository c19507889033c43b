package guest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"
)

// Cmd is a program to run in a guest.
type Cmd struct {
	// Argv is the program and its arguments; a name without a slash is looked up in the
	// guest's PATH.
	Argv []string
	// Env adds to the guest's own environment (PATH, HOME, USER, LANG, TERM).
	Env []string
	// Dir is the working folder; empty means /root.
	Dir string
	// Stdin, Stdout and Stderr may be nil: no input, output thrown away. With a
	// terminal, all output comes on Stdout.
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	// Pty, where set, runs the program on a terminal of its own.
	Pty *Pty
	// Grace is how long the program may take to end after its context is cancelled: it
	// gets SIGTERM, and after this time SIGKILL. 0 means SIGKILL at once.
	Grace time.Duration
}

// Pty is a terminal.
type Pty struct {
	Term string `json:"term"`
	Rows int    `json:"rows"`
	Cols int    `json:"cols"`
}

// Status is how a program ended.
type Status struct {
	// Code is its exit code, or 128 plus the number of the signal that killed it.
	Code int
	// Signal is the name of that signal without SIG, or empty.
	Signal string
}

// Process is a program that runs in a guest.
type Process struct {
	guest  *Guest
	ch     ssh.Channel
	cmd    Cmd
	copies sync.WaitGroup
	outErr chan error
	status chan *Status // one status, nil where the connection ended before
	done   chan struct{}
}

// Run runs a program to its end and returns its exit code (128 plus the signal's number
// where one killed it). The error says why there is no exit code: the program could not
// be started, ctx ended, or the guest failed (see Failure).
func (g *Guest) Run(ctx context.Context, cmd Cmd) (int, error) {
	p, err := g.Start(ctx, cmd)
	if err != nil {
		return -1, err
	}
	st, err := p.Wait(ctx)
	return st.Code, err
}

// Start starts a program. Wait must be called.
func (g *Guest) Start(ctx context.Context, cmd Cmd) (*Process, error) {
	if len(cmd.Argv) == 0 {
		return nil, errors.New("run in guest: no program named")
	}
	ch, requests, err := g.open(ctx, chanRun, runSpec{Argv: cmd.Argv, Env: cmd.Env, Dir: cmd.Dir, Pty: cmd.Pty})
	if err != nil {
		return nil, fmt.Errorf("run %s in guest: %w", cmd.Argv[0], err)
	}
	p := &Process{guest: g, ch: ch, cmd: cmd, outErr: make(chan error, 2), status: make(chan *Status, 1), done: make(chan struct{})}
	go p.collect(requests)
	p.copies.Add(2)
	go p.copyOut(cmd.Stdout, ch)
	go p.copyOut(cmd.Stderr, ch.Stderr())
	go func() {
		if cmd.Stdin != nil {
			// An error here is the program not reading on, or the guest's end, which
			// Wait reports.
			_, _ = io.Copy(ch, cmd.Stdin)
		}
		_ = ch.CloseWrite()
	}()
	return p, nil
}

// copyOut passes output on, and goes on reading when it can't: a program in the guest
// must not hang because nobody listens.
func (p *Process) copyOut(w io.Writer, r io.Reader) {
	defer p.copies.Done()
	if w == nil {
		w = io.Discard
	}
	if _, err := io.Copy(w, r); err != nil {
		p.outErr <- err
		_, _ = io.Copy(io.Discard, r)
	}
}

func (p *Process) collect(requests <-chan *ssh.Request) {
	var st *Status
	for req := range requests {
		switch req.Type {
		case "exit-status":
			var m exitStatusMsg
			if ssh.Unmarshal(req.Payload, &m) == nil {
				st = &Status{Code: int(m.Code)}
			}
		case "exit-signal":
			var m exitSignalMsg
			if ssh.Unmarshal(req.Payload, &m) == nil {
				st = &Status{Code: 128 + signalNumber(m.Name), Signal: m.Name}
			}
		}
		if req.WantReply {
			_ = req.Reply(true, nil)
		}
	}
	p.status <- st
	close(p.done)
}

// Signal sends a signal, named without SIG (INT, TERM, KILL, USR1 …), to the program
// and its process group.
func (p *Process) Signal(name string) error {
	_, err := p.ch.SendRequest("signal", false, ssh.Marshal(signalMsg{Name: strings.TrimPrefix(name, "SIG")}))
	return err
}

// Resize tells the program's terminal its new size.
func (p *Process) Resize(rows, cols int) error {
	_, err := p.ch.SendRequest("window-change", false, ssh.Marshal(windowChange{Cols: uint32(cols), Rows: uint32(rows)}))
	return err
}

// Wait waits for the program to end and for its output to be passed on. When ctx ends
// first, the program is ended (see Cmd.Grace) and the error is ctx's.
func (p *Process) Wait(ctx context.Context) (Status, error) {
	select {
	case <-p.done:
	case <-ctx.Done():
		p.end()
	}
	_ = p.ch.Close()
	p.copies.Wait()
	st := <-p.status
	switch {
	case st == nil && ctx.Err() != nil:
		return Status{Code: -1}, fmt.Errorf("run %s in guest: %w", p.cmd.Argv[0], ctx.Err())
	case st == nil:
		return Status{Code: -1}, fmt.Errorf("run %s in guest: %w", p.cmd.Argv[0], p.guest.reason())
	case ctx.Err() != nil:
		return *st, fmt.Errorf("run %s in guest: %w", p.cmd.Argv[0], ctx.Err())
	}
	select {
	case err := <-p.outErr:
		return *st, fmt.Errorf("output of %s in guest: %w", p.cmd.Argv[0], err)
	default:
		return *st, nil
	}
}

// end ends a program whose time is over.
func (p *Process) end() {
	if p.cmd.Grace > 0 && p.Signal("TERM") == nil {
		t := time.NewTimer(p.cmd.Grace)
		defer t.Stop()
		select {
		case <-p.done:
			return
		case <-t.C:
		}
	}
	if p.Signal("KILL") != nil {
		return
	}
	select {
	case <-p.done:
	case <-time.After(5 * time.Second):
	}
}

// Ship unpacks a tar stream below dir in the guest.
func (g *Guest) Ship(ctx context.Context, dir string, r io.Reader) error {
	return g.transfer(ctx, chanShip, dir, func(ch ssh.Channel) error {
		_, err := io.Copy(ch, r)
		return errors.Join(err, ch.CloseWrite())
	})
}

// ShipDir copies a folder (or a file) of the machine below dir in the guest.
func (g *Guest) ShipDir(ctx context.Context, from, dir string) error {
	r, w := io.Pipe()
	go func() { w.CloseWithError(pack(w, from)) }()
	defer r.Close()
	return g.Ship(ctx, dir, r)
}

// Fetch copies the folder dir of the guest to the folder to of the machine. The guest
// is not trusted: nothing is written outside to.
func (g *Guest) Fetch(ctx context.Context, dir, to string) error {
	return g.transfer(ctx, chanFetch, dir, func(ch ssh.Channel) error { return unpack(ch, to) })
}

// transfer runs a ship or fetch channel; the guest's own error, sent on the extended
// stream, comes first.
func (g *Guest) transfer(ctx context.Context, kind, dir string, move func(ssh.Channel) error) error {
	ch, requests, err := g.open(ctx, kind, pathSpec{Path: dir})
	if err != nil {
		return fmt.Errorf("%s %s: %w", strings.TrimSuffix(kind, "@rocebed"), dir, err)
	}
	stop := context.AfterFunc(ctx, func() { _ = ch.Close() })
	defer stop()
	said := make(chan string, 1)
	go func() {
		raw, _ := io.ReadAll(io.LimitReader(ch.Stderr(), 64<<10))
		said <- string(raw)
	}()
	err = move(ch)
	if kind == chanFetch {
		_, _ = io.Copy(io.Discard, ch)
	}
	var st *exitStatusMsg
	for req := range requests {
		if req.Type == "exit-status" {
			st = &exitStatusMsg{}
			if ssh.Unmarshal(req.Payload, st) != nil {
				st = nil
			}
		}
	}
	_ = ch.Close()
	complaint := <-said
	switch {
	case ctx.Err() != nil:
		err = ctx.Err()
	case st == nil:
		err = g.reason()
	case complaint != "":
		err = errors.New(complaint)
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w", strings.TrimSuffix(kind, "@rocebed"), dir, err)
	}
	return nil
}

// Dial connects to a unix stream socket in the guest.
func (g *Guest) Dial(ctx context.Context, path string) (net.Conn, error) {
	ch, requests, err := g.open(ctx, chanDial, pathSpec{Path: path})
	if err != nil {
		return nil, fmt.Errorf("connect to %s in guest: %w", path, err)
	}
	go ssh.DiscardRequests(requests)
	// The channel has no deadlines; a pipe in between gives them.
	near, far := net.Pipe()
	go func() {
		_, _ = io.Copy(ch, far)
		_ = ch.CloseWrite()
	}()
	go func() {
		_, _ = io.Copy(far, ch)
		far.Close()
		ch.Close()
	}()
	return near, nil
}

// open opens a channel with JSON parameters.
func (g *Guest) open(ctx context.Context, kind string, params any) (ssh.Channel, <-chan *ssh.Request, error) {
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	ch, requests, err := g.conn.OpenChannel(kind, mustJSON(params))
	var refused *ssh.OpenChannelError
	switch {
	case errors.As(err, &refused):
		return nil, nil, errors.New(refused.Message)
	case err != nil:
		return nil, nil, g.reason()
	}
	return ch, requests, nil
}

// ask sends a global request and decodes the answer where into is set.
func ask(conn ssh.Conn, request string, into any) error {
	ok, payload, err := conn.SendRequest(request, true, nil)
	if err != nil {
		return err
	}
	if !ok {
		return fmt.Errorf("%s was refused", request)
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(payload, into)
}
