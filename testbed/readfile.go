package testbed

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/rocebed/rocebed/topo/strict"
)

// openPatience is how long opening a file may last. It lasts for ever where the file is a named pipe
// that nobody writes to.
const openPatience = 10 * time.Second

// ReadFile reads a file that is going to be decoded: no more of it than such a file may be long, so
// that /dev/zero ends too. A pipe is read until its writer ends, but not waited for without a writer.
func ReadFile(path string) ([]byte, error) { return readFile(path, openPatience) }

func readFile(path string, patience time.Duration) ([]byte, error) {
	if path == "" {
		return nil, errors.New("the file's name is empty")
	}
	f, err := open(path, patience)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, strict.MaxBytes+1)) // strict says that it is too long
}

func open(path string, patience time.Duration) (*os.File, error) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if st.Mode()&os.ModeNamedPipe == 0 {
		return os.Open(path)
	}
	type opened struct {
		f   *os.File
		err error
	}
	result, gaveUp := make(chan opened), make(chan struct{})
	go func() {
		f, err := os.Open(path)
		select {
		case result <- opened{f, err}:
		case <-gaveUp:
			f.Close()
		}
	}()
	select {
	case r := <-result:
		return r.f, r.err
	case <-time.After(patience):
		close(gaveUp)
		return nil, fmt.Errorf("open %s: it is a pipe, and nobody writes to it", path)
	}
}
