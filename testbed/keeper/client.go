//go:build linux

package keeper

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rocebed/rocebed/testbed/guest"
	"github.com/rocebed/rocebed/testbed/linux"
	"github.com/rocebed/rocebed/topo/strict"
)

const (
	socketName = "keeper.sock"
	guestName  = "guest.sock"
	logName    = "keeper.log"
)

// What can be the matter with a testbed that is asked for. Match with errors.Is.
var (
	ErrNone  = errors.New("there is no such testbed")
	ErrDead  = errors.New("its keeper is dead")
	ErrBusy  = errors.New("it has no keeper that answers")
	errNoEnd = errors.New("the keeper ended before it had answered; 'rocebed clean' removes what it left")
)

// Client asks the keeper of a testbed.
type Client struct{ testbed string }

// Find returns a client for the testbed of that name; for an empty name, for the only one that is
// up. It fails with ErrNone, ErrDead (rocebed clean removes what is left) or ErrBusy (a run has
// it, or it is still coming up).
func Find(testbed string) (*Client, error) {
	if testbed != "" {
		return find(testbed)
	}
	names, err := linux.Testbeds()
	if err != nil {
		return nil, err
	}
	var up []*Client
	var upNames []string
	var others []error
	for _, name := range names {
		c, err := find(name)
		if err != nil {
			others = append(others, err)
		} else {
			up, upNames = append(up, c), append(upNames, name)
		}
	}
	switch {
	case len(up) == 1:
		return up[0], nil
	case len(up) > 1:
		return nil, fmt.Errorf("several testbeds are up, say which: %s", strings.Join(upNames, ", "))
	case len(others) > 0:
		return nil, errors.Join(others...)
	}
	return nil, fmt.Errorf("%w: none is up ('rocebed up SCENARIO' makes one)", ErrNone)
}

func find(testbed string) (*Client, error) {
	if err := linux.CheckName(testbed); err != nil {
		return nil, err
	}
	if _, err := os.Stat(linux.StateDir(testbed)); err != nil {
		if errors.Is(err, os.ErrPermission) {
			return nil, fmt.Errorf("testbed %s: only root can use testbeds: %w", testbed, err)
		}
		names, _ := linux.Testbeds()
		return nil, fmt.Errorf("testbed %s: %w%s", testbed, ErrNone, strict.DidYouMean(testbed, names))
	}
	pid, living := linux.Living(testbed)
	if !living {
		return nil, fmt.Errorf("testbed %s: %w ('rocebed clean' removes what it left)", testbed, ErrDead)
	}
	if _, err := os.Stat(filepath.Join(linux.StateDir(testbed), socketName)); err != nil {
		return nil, fmt.Errorf("testbed %s: %w: process %d holds it, for a run or because it is still coming up or going down", testbed, ErrBusy, pid)
	}
	return &Client{testbed}, nil
}

// Testbed is the testbed's name.
func (c *Client) Testbed() string { return c.testbed }

// Status says what the testbed is.
func (c *Client) Status(ctx context.Context) (st Status, err error) {
	return st, c.call(ctx, methodStatus, nil, &st, nil)
}

// Metrics reads every metric once.
func (c *Client) Metrics(ctx context.Context) (m Metrics, err error) {
	return m, c.call(ctx, methodMetrics, nil, &m, nil)
}

// Program says how this process becomes a program on a node.
func (c *Client) Program(ctx context.Context, node string) (p Program, err error) {
	return p, c.call(ctx, methodProgram, programParams{Node: node}, &p, nil)
}

// AddFaults puts faults, as a scenario file has them, on the testbed; file is for messages. Its error is an AnswerError where the keeper says why not.
func (c *Client) AddFaults(ctx context.Context, file string, source []byte) (f FaultStates, err error) {
	return f, c.call(ctx, methodFaultAdd, faultAddParams{file, source}, &f, nil)
}

// Faults are the testbed's.
func (c *Client) Faults(ctx context.Context) (f FaultStates, err error) {
	return f, c.call(ctx, methodFaultList, nil, &f, nil)
}

// HealFaults ends faults by name, or all of them where none is named.
func (c *Client) HealFaults(ctx context.Context, names ...string) (f FaultStates, err error) {
	return f, c.call(ctx, methodFaultHeal, faultHealParams{names}, &f, nil)
}

// Down takes the testbed down and waits until its keeper has let go of it. Where another took it
// down at the same time, the keeper may end before it has answered; what counts is that the
// testbed is gone.
func (c *Client) Down(ctx context.Context, step func(string)) error {
	pid, _ := linux.Living(c.testbed)
	err := c.call(ctx, methodDown, nil, nil, step)
	if err != nil && !hungUp(err) {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, downWithin)
	defer cancel()
	for {
		if now, living := linux.Living(c.testbed); !living || now != pid {
			break
		}
		select {
		case <-ctx.Done():
			return errors.Join(err, ctx.Err())
		case <-time.After(2 * time.Millisecond):
		}
	}
	if _, statErr := os.Stat(linux.StateDir(c.testbed)); errors.Is(statErr, os.ErrNotExist) {
		return nil
	}
	return err
}

// hungUp says whether a call failed because nobody was at the other end any more.
func hungUp(err error) bool {
	for _, e := range []error{errNoEnd, unix.EPIPE, unix.ECONNRESET, unix.ECONNREFUSED, unix.ENOENT} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// Guest connects to the guest that the testbed lives in. Close the guest to hang up.
func (c *Client) Guest() (*guest.Guest, error) {
	conn, err := net.Dial("unix", filepath.Join(linux.StateDir(c.testbed), guestName))
	if err != nil {
		return nil, fmt.Errorf("testbed %s: connect to its guest: %w", c.testbed, err)
	}
	g, err := guest.Join(conn)
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("testbed %s: %w", c.testbed, err)
	}
	return g, nil
}

// call sends a request and decodes the result; step hears the steps before it.
func (c *Client) call(ctx context.Context, method string, params, result any, step func(string)) error {
	fail := func(err error) error { return fmt.Errorf("testbed %s: %s: %w", c.testbed, method, err) }
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", filepath.Join(linux.StateDir(c.testbed), socketName))
	if err != nil {
		return fail(err)
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	req := request{Method: method}
	if params != nil {
		if req.Params, err = json.Marshal(params); err != nil {
			return fail(err)
		}
	}
	if err := json.NewEncoder(conn).Encode(req); err != nil {
		return fail(err)
	}
	in := bufio.NewReader(conn)
	for {
		raw, err := in.ReadBytes('\n')
		if ctx.Err() != nil {
			return fail(ctx.Err())
		}
		if err != nil {
			return fail(fmt.Errorf("%w (%w)", errNoEnd, err))
		}
		var r reply
		if err := json.Unmarshal(raw, &r); err != nil {
			return fail(err)
		}
		switch {
		case r.Error != "":
			return &AnswerError{Why: r.Error, Code: max(r.Code, codeFailed)}
		case r.Result != nil:
			if result == nil {
				return nil
			}
			return json.Unmarshal(r.Result, result)
		case step != nil && r.Step != "":
			step(r.Step)
		}
	}
}
