//go:build linux

package keeper

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rocebed/rocebed/testbed/fabric"
	"github.com/rocebed/rocebed/testbed/guest"
	"github.com/rocebed/rocebed/testbed/linux"
)

// InGuest says how a testbed is brought up in a guest.
type InGuest struct {
	Testbed string
	Boot    guest.Config
	// Up is the command that brings the testbed of the same name up inside; the guest's rocebed
	// and its arguments.
	Up []string
}

type guestBed struct {
	name  string
	mine  *linux.Testbed
	guest *guest.Guest

	faulty atomic.Bool // faults have been added
}

// BringGuest boots a guest, brings a testbed up in it, and holds both under the testbed's name on
// this machine.
func BringGuest(ctx context.Context, cfg InGuest, log *slog.Logger, step func(string)) (_ Bed, err error) {
	mine, err := linux.Acquire(ctx, cfg.Testbed)
	if err != nil {
		return nil, err
	}
	b := &guestBed{name: cfg.Testbed, mine: mine}
	defer func() {
		if err != nil {
			down, cancel := context.WithTimeout(context.Background(), downWithin)
			defer cancel()
			err = errors.Join(err, b.Close(down))
		}
	}()
	cfg.Boot.Progress = step
	if b.guest, err = guest.Boot(ctx, cfg.Boot); err != nil {
		return nil, err
	}
	// QEMU ends with this process; the journal is for the case that it doesn't.
	if err := mine.Own(linux.KindProcess, linux.ProcessID(b.guest.PID())...); err != nil {
		return nil, err
	}
	log.Info("guest booted", "kernel", b.guest.Report.Kernel, "accel", b.guest.Report.Accel, "took", b.guest.Report.Total)
	var said lines
	said.each = func(l string) { step("guest: " + l) }
	code, err := b.guest.Run(ctx, guest.Cmd{Argv: cfg.Up, Stdout: &said, Stderr: &said, Grace: 10 * time.Second})
	if err != nil {
		return nil, err
	}
	if code != 0 {
		return nil, &StartError{Why: fmt.Sprintf("bringing the testbed up in the guest failed: %s", said.last), Code: code}
	}
	return b, nil
}

// lines passes whole lines on and keeps the last.
type lines struct {
	mu   sync.Mutex
	each func(string)
	rest []byte
	last string
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rest = append(l.rest, b...)
	for {
		line, rest, ok := bytes.Cut(l.rest, []byte("\n"))
		if !ok {
			return len(b), nil
		}
		l.rest = rest
		if text := strings.TrimRight(string(line), "\r "); text != "" {
			l.last = text
			l.each(text)
		}
	}
}

// ask runs a command of the guest's own rocebed that answers with JSON.
func (b *guestBed) ask(ctx context.Context, into any, argv ...string) error {
	var out, errs bytes.Buffer
	code, err := b.guest.Run(ctx, guest.Cmd{Argv: append([]string{guest.BinaryPath}, argv...), Stdout: &out, Stderr: &errs})
	if err != nil {
		return err
	}
	if code != 0 {
		return fmt.Errorf("in the guest: %s", strings.TrimSpace(errs.String()))
	}
	return json.Unmarshal(out.Bytes(), into)
}

// Status asks the keeper in the guest.
func (b *guestBed) Status(ctx context.Context) (st Status, err error) {
	if err := b.ask(ctx, &st, "status", "--json", b.name); err != nil {
		return st, err
	}
	r := &b.guest.Report
	st.Keeper = os.Getpid()
	st.Guest = &GuestStatus{PID: b.guest.PID(), Kernel: r.Kernel, Accel: r.Accel, MemoryMB: r.MemoryMB, CPUs: r.CPUs}
	if problem := b.guest.Clock().Problem; problem != "" {
		st.KeptUp, st.Late = false, problem
	}
	return st, nil
}

// Program sends the asking process into the guest, where the node is.
func (b *guestBed) Program(_ context.Context, node string) (Program, error) {
	return Program{Node: node, Guest: true}, nil
}

// Metrics asks the keeper in the guest.
func (b *guestBed) Metrics(ctx context.Context) (m Metrics, err error) {
	return m, b.ask(ctx, &m, "status", "--metrics", "--json", b.name)
}

func (b *guestBed) Ended() <-chan struct{} { return b.guest.Done() }
func (b *guestBed) Err() error             { return b.guest.Err() }

// Faults are those of the keeper in the guest.
func (b *guestBed) Faults() fabric.LiveFaults { return guestFaults{b} }

// Close heals the faults in the guest and ends it with everything in it.
func (b *guestBed) Close(ctx context.Context) error {
	var err error
	if b.guest != nil {
		if b.faulty.Load() && b.guest.Err() == nil {
			healing, cancel := context.WithTimeout(ctx, healWithin)
			defer cancel()
			if err = b.Faults().Close(healing); err != nil {
				err = fmt.Errorf("testbed %s: healing its faults: %w", b.name, err)
			}
		}
		err = errors.Join(err, b.guest.Close())
	}
	return errors.Join(err, b.mine.Close(ctx))
}

// guestSocket lets processes of this machine use the guest.
type guestSocket struct {
	l     *net.UnixListener
	mu    sync.Mutex
	conns map[net.Conn]bool
	wait  sync.WaitGroup
}

func shareGuest(g *guest.Guest, path string, log *slog.Logger) (*guestSocket, error) {
	l, err := listen(path)
	if err != nil {
		return nil, err
	}
	s := &guestSocket{l: l, conns: map[net.Conn]bool{}}
	s.wait.Go(func() {
		for {
			c, err := l.AcceptUnix()
			if err != nil {
				return
			}
			s.mu.Lock()
			s.conns[c] = true
			s.mu.Unlock()
			s.wait.Go(func() {
				defer func() {
					c.Close()
					s.mu.Lock()
					delete(s.conns, c)
					s.mu.Unlock()
				}()
				if err := rootPeer(c); err != nil {
					log.Warn("keeper: guest socket", "error", err)
					return
				}
				if err := g.Share(c); err != nil {
					log.Warn("keeper: guest socket", "error", err)
				}
			})
		}
	})
	return s, nil
}

func (s *guestSocket) close() {
	s.l.Close()
	s.mu.Lock()
	for c := range s.conns {
		c.Close()
	}
	s.mu.Unlock()
	s.wait.Wait()
}
