//go:build linux

package keeper

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/rocebed/rocebed/testbed/fabric"
	"github.com/rocebed/rocebed/testbed/guest"
)

// guestFaults are the faults of a testbed in a guest: the guest's own rocebed is asked.
type guestFaults struct{ b *guestBed }

// ask runs the guest's fault command.
func (g guestFaults) ask(ctx context.Context, input []byte, argv ...string) ([]fabric.FaultState, error) {
	var out, errs bytes.Buffer
	argv = append([]string{guest.BinaryPath, "fault", argv[0], "--json", "--name", g.b.name}, argv[1:]...)
	code, err := g.b.guest.Run(ctx, guest.Cmd{Argv: argv, Stdin: bytes.NewReader(input), Stdout: &out, Stderr: &errs})
	if err != nil {
		return nil, err
	}
	var states FaultStates
	if out.Len() > 0 {
		err = json.Unmarshal(out.Bytes(), &states)
	}
	if code != 0 {
		return states.Faults, &AnswerError{Why: strings.TrimPrefix(strings.TrimSpace(errs.String()), "rocebed: "), Code: code}
	}
	return states.Faults, err
}

// Add implements fabric.LiveFaults.
func (g guestFaults) Add(ctx context.Context, file string, source []byte) ([]fabric.FaultState, error) {
	g.b.faulty.Store(true)
	return g.ask(ctx, source, "add", "--label", file, "-")
}

// List implements fabric.LiveFaults.
func (g guestFaults) List(ctx context.Context) ([]fabric.FaultState, error) {
	return g.ask(ctx, nil, "list")
}

// Heal implements fabric.LiveFaults.
func (g guestFaults) Heal(ctx context.Context, names ...string) ([]fabric.FaultState, error) {
	if len(names) == 0 {
		names = []string{"--all"}
	}
	return g.ask(ctx, nil, append([]string{"heal"}, names...)...)
}

// Close implements fabric.LiveFaults.
func (g guestFaults) Close(ctx context.Context) error {
	states, err := g.List(ctx)
	for _, s := range states { // healed before, and not for good
		if s.State == fabric.FaultStuck {
			err = errors.Join(err, errors.New("fault "+s.Name+": "+strings.Join(s.Problems, "; ")))
		}
	}
	if err != nil {
		return err
	}
	_, err = g.Heal(ctx)
	return err
}
