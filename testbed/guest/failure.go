package guest

import (
	"errors"
	"fmt"
	"strings"
)

// What can become of a guest. Match with errors.Is.
var (
	// ErrUnavailable: this machine can't boot a guest; the error says what is missing.
	ErrUnavailable = errors.New("this machine cannot boot a guest")
	// ErrPanic: the guest's kernel panicked.
	ErrPanic = errors.New("guest kernel panic")
	// ErrDied: the guest ended by itself, or QEMU did.
	ErrDied = errors.New("guest died")
	// ErrHung: the guest stopped answering and was killed.
	ErrHung = errors.New("guest hung")
	// ErrBoot: the guest did not come up.
	ErrBoot = errors.New("guest did not boot")
	// ErrClock: the guest's clock is not the machine's.
	ErrClock = errors.New("guest clock is off")
	// ErrClosed: the guest was closed.
	ErrClosed = errors.New("guest is closed")
)

// Failure is how a guest ended without being asked to.
type Failure struct {
	// Kind is one of the errors above.
	Kind error
	// Detail says what was seen.
	Detail string
	// Console holds the last lines that the guest's kernel printed.
	Console []string
}

// Unwrap gives the kind.
func (f *Failure) Unwrap() error { return f.Kind }

// Error gives kind, detail and the last console lines.
func (f *Failure) Error() string {
	var b strings.Builder
	b.WriteString(f.Kind.Error())
	if f.Detail != "" {
		b.WriteString(": " + f.Detail)
	}
	if len(f.Console) > 0 {
		b.WriteString("; the last lines of its console:\n  | " + strings.Join(f.Console, "\n  | "))
	}
	return b.String()
}

func unavailable(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrUnavailable, fmt.Errorf(format, args...))
}
