//go:build linux

package keeper

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rocebed/rocebed/testbed/linux"
)

// downWithin bounds taking a testbed down, in wall time.
const downWithin = 90 * time.Second

// healWithin is how much of that healing faults may take.
const healWithin = 45 * time.Second

// Serve is the life of a keeper: it brings a testbed up, tells the process that started it how
// that goes (see [Start]) and ends with it until then, answers on the testbed's socket, and takes the testbed down when it is
// asked to, gets SIGTERM or SIGINT, or the testbed ends by itself. bring must leave nothing
// behind when it fails.
func Serve(ctx context.Context, testbed string, bring func(ctx context.Context, log *slog.Logger, step func(string)) (Bed, error)) error {
	starter := openStarter()
	defer starter.close()
	ctx, cancel := signal.NotifyContext(ctx, unix.SIGTERM, unix.SIGINT)
	defer cancel()
	logs := &lateFile{}
	log := slog.New(slog.NewTextHandler(logs, &slog.HandlerOptions{Level: slog.LevelDebug})).With("testbed", testbed)
	slog.SetDefault(log)

	alone, err := starter.watch(func() {
		log.Error("the process that started this keeper has died: taking down what there is")
		cancel()
	})
	if err != nil {
		return fmt.Errorf("keeper: %w", err)
	}
	bed, err := bring(ctx, log, starter.step)
	alone()
	if err != nil {
		starter.fail(err)
		return err
	}
	k := &keeper{testbed: testbed, bed: bed, log: log, ending: make(chan struct{})}
	if err := k.open(); err != nil {
		err = errors.Join(err, k.down(func(string) {}))
		starter.fail(err)
		return err
	}
	if err := logs.open(filepath.Join(linux.StateDir(testbed), logName)); err != nil {
		log.Warn("keeper: no log file", "error", err)
	}
	log.Info("up")
	if err := starter.ready(); err != nil {
		log.Error("nobody waits for this testbed any more: taking it down", "error", err)
		cancel()
	}
	return k.run(ctx)
}

// keeper is a testbed that is up and the sockets to it.
type keeper struct {
	testbed string
	bed     Bed
	log     *slog.Logger
	server  *server
	guest   *guestSocket // nil without a guest

	once   sync.Once
	ending chan struct{} // closed when going down has begun
	result error
}

func (k *keeper) open() error {
	l, err := listen(filepath.Join(linux.StateDir(k.testbed), socketName))
	if err != nil {
		return err
	}
	k.server = &server{bed: k.bed, log: k.log, l: l, stop: k.down}
	if g, ok := k.bed.(*guestBed); ok {
		if k.guest, err = shareGuest(g.guest, filepath.Join(linux.StateDir(k.testbed), guestName), k.log); err != nil {
			l.Close()
		}
	}
	return err
}

func (k *keeper) run(ctx context.Context) error {
	serving := make(chan struct{})
	go func() {
		defer close(serving)
		k.server.serve(context.WithoutCancel(ctx))
	}()
	var err error
	select {
	case <-ctx.Done():
		k.log.Info("asked to end")
	case <-k.bed.Ended():
		err = fmt.Errorf("testbed %s ended by itself: %w", k.testbed, k.bed.Err())
		k.log.Error("the testbed ended by itself", "error", err)
	case <-k.ending:
	}
	err = errors.Join(err, k.down(func(string) {}))
	<-serving
	k.server.conns.Wait() // whoever asked to go down has the answer
	return err
}

// down takes the testbed down, once, whoever asks; all who ask wait for it.
func (k *keeper) down(step func(string)) error {
	k.once.Do(func() {
		close(k.ending)
		if k.server != nil {
			k.server.l.Close()
		}
		if k.guest != nil {
			k.guest.close()
		}
		step("taking testbed " + k.testbed + " down")
		ctx, cancel := context.WithTimeout(context.Background(), downWithin)
		defer cancel()
		if k.result = k.bed.Close(ctx); k.result != nil {
			k.result = fmt.Errorf("%w (rocebed clean removes what is left)", k.result)
			k.log.Error("taking down failed", "error", k.result)
		}
	})
	return k.result
}

// lateFile is a log that is kept in memory until its file can be opened: the testbed's folder is
// emptied while the testbed comes up.
type lateFile struct {
	mu   sync.Mutex
	held []byte
	file *os.File
}

const heldLog = 1 << 20

func (f *lateFile) Write(b []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.file != nil {
		return f.file.Write(b)
	}
	if len(f.held)+len(b) <= heldLog {
		f.held = append(f.held, b...)
	}
	return len(b), nil
}

// open writes what was held to the file, which from now on also takes the process's standard
// output and error (a panic's trace goes there).
func (f *lateFile) open(path string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	if _, err := file.Write(f.held); err != nil {
		file.Close()
		return err
	}
	f.file, f.held = file, nil
	if os.Getenv(starterEnv) == "" {
		return nil // not a process of its own: its streams are somebody else's
	}
	return errors.Join(unix.Dup3(int(file.Fd()), 1, 0), unix.Dup3(int(file.Fd()), 2, 0))
}
