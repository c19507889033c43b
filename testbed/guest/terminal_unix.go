//go:build unix

package guest

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/term"
)

// carried are the signals that a command in the guest gets in place of the command here.
var carried = map[os.Signal]string{
	syscall.SIGINT: "INT", syscall.SIGTERM: "TERM", syscall.SIGHUP: "HUP", syscall.SIGQUIT: "QUIT",
	syscall.SIGUSR1: "USR1", syscall.SIGUSR2: "USR2",
}

// Attach runs a program in the guest as if it ran here: with this process's standard
// streams, its terminal (raw while the program runs, window size and TERM carried)
// where standard input and output are one, and the signals that this process gets.
// Stdin, Stdout, Stderr and Pty of cmd are overwritten.
func (g *Guest) Attach(ctx context.Context, cmd Cmd) (Status, error) {
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.Pty = os.Stdin, os.Stdout, os.Stderr, nil
	in, out := int(os.Stdin.Fd()), int(os.Stdout.Fd())
	signals := make(chan os.Signal, 8)
	for s := range carried {
		signal.Notify(signals, s)
	}
	defer signal.Stop(signals)
	if term.IsTerminal(in) && term.IsTerminal(out) {
		cols, rows, err := term.GetSize(out)
		if err != nil {
			cols, rows = 80, 24
		}
		cmd.Pty = &Pty{Term: os.Getenv("TERM"), Rows: rows, Cols: cols}
		signal.Notify(signals, syscall.SIGWINCH)
		old, err := term.MakeRaw(in)
		if err != nil {
			return Status{Code: -1}, err
		}
		defer term.Restore(in, old) //nolint:errcheck // nothing is left to try
	}
	p, err := g.Start(ctx, cmd)
	if err != nil {
		return Status{Code: -1}, err
	}
	go func() {
		for {
			select {
			case s := <-signals:
				if s == syscall.SIGWINCH {
					if cols, rows, err := term.GetSize(out); err == nil {
						_ = p.Resize(rows, cols)
					}
				} else {
					_ = p.Signal(carried[s])
				}
			case <-p.done:
				return
			}
		}
	}()
	return p.Wait(ctx)
}
