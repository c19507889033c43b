//go:build linux

package keeper

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/rocebed/rocebed/topo/strict"
)

// server answers on a testbed's socket.
type server struct {
	bed  Bed
	log  *slog.Logger
	stop func(step func(string)) error // takes the testbed down, once; later calls wait for it

	l     *net.UnixListener
	conns sync.WaitGroup
}

func listen(path string) (*net.UnixListener, error) {
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("keeper: %w", err)
	}
	// The folder is root's alone; so is the socket, should it ever be moved.
	if err := os.Chmod(path, 0o600); err != nil {
		l.Close()
		return nil, fmt.Errorf("keeper: %w", err)
	}
	return l, nil
}

// serve accepts until the listener is closed.
func (s *server) serve(ctx context.Context) {
	for {
		c, err := s.l.AcceptUnix()
		if err != nil {
			if !errors.Is(err, net.ErrClosed) {
				s.log.Error("keeper: accept", "error", err)
			}
			return
		}
		s.conns.Go(func() {
			defer c.Close()
			if err := s.answer(ctx, c); err != nil {
				s.log.Warn("keeper: request", "error", err)
			}
		})
	}
}

// answer handles the one request of a connection.
func (s *server) answer(ctx context.Context, c *net.UnixConn) error {
	if err := rootPeer(c); err != nil {
		return err
	}
	raw, err := bufio.NewReader(c).ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("read: %w", err)
	}
	var req request
	if err := json.Unmarshal(raw, &req); err != nil {
		return fmt.Errorf("read: %w", err)
	}
	out := json.NewEncoder(c)
	result, err := s.handle(ctx, req, func(step string) { _ = out.Encode(reply{Step: step}) })
	if err != nil {
		return out.Encode(reply{Error: err.Error(), Code: codeOf(err)})
	}
	b, err := json.Marshal(result)
	if err != nil {
		return out.Encode(reply{Error: err.Error()})
	}
	return out.Encode(reply{Result: b})
}

func (s *server) handle(ctx context.Context, req request, step func(string)) (any, error) {
	switch req.Method {
	case methodStatus:
		return s.bed.Status(ctx)
	case methodMetrics:
		return s.bed.Metrics(ctx)
	case methodProgram:
		var p programParams
		if err := json.Unmarshal(req.Params, &p); err != nil {
			return nil, err
		}
		return s.bed.Program(ctx, p.Node)
	case methodFaultAdd, methodFaultList, methodFaultHeal:
		return s.faults(ctx, req)
	case methodDown:
		return struct{}{}, s.stop(step)
	}
	return nil, fmt.Errorf("this keeper knows no method %q; it may be of another version than the command", req.Method)
}

// faults handles what is asked of faults. Whoever asked may be gone before the answer: the faults stay.
func (s *server) faults(ctx context.Context, req request) (out FaultStates, err error) {
	f := s.bed.Faults()
	if f == nil {
		return out, errors.New("this testbed has no faults")
	}
	switch req.Method {
	case methodFaultAdd:
		var p faultAddParams
		if err := json.Unmarshal(req.Params, &p); err != nil {
			return out, err
		}
		out.Faults, err = f.Add(ctx, p.File, p.Source)
	case methodFaultHeal:
		var p faultHealParams
		if err := json.Unmarshal(req.Params, &p); err != nil {
			return out, err
		}
		out.Faults, err = f.Heal(ctx, p.Names...)
	default:
		out.Faults, err = f.List(ctx)
	}
	return out, err
}

// codeOf is the exit code that an error asks for.
func codeOf(err error) int {
	if a, ok := errors.AsType[*AnswerError](err); ok {
		return a.Code
	}
	if _, ok := errors.AsType[strict.Problems](err); ok {
		return codeWrong
	}
	if _, ok := errors.AsType[interface {
		error
		Wrong()
	}](err); ok {
		return codeWrong
	}
	return codeFailed
}

// rootPeer refuses a process at the other end that isn't root's.
func rootPeer(c *net.UnixConn) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var cred *unix.Ucred
	if cerr := raw.Control(func(fd uintptr) { cred, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }); cerr != nil {
		return cerr
	}
	if err != nil {
		return err
	}
	if cred.Uid != 0 {
		return fmt.Errorf("process %d of user %d asked: only root may", cred.Pid, cred.Uid)
	}
	return nil
}
