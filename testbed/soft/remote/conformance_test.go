//go:build linux

package remote

import (
	"context"
	"errors"
	"fmt"
	"math/rand"
	"net"
	"net/netip"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rocebed/rocebed/datapath/link"
	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/datapath/rnic"
	"github.com/rocebed/rocebed/datapath/roce"
	"github.com/rocebed/rocebed/workloads/verbs/conformance"
)

const testPatience = 30 * time.Second

// bench is software RNICs on one loop, two ports that reach each other, and a client on a loop of its own for each opening.
type bench struct {
	t      *testing.T
	loop   *loop.Real
	frames link.Pool
	at     [2]*rnic.Device // who gets what arrives: the first that was opened
	lose   float64         // of what host 0 sends
	random *rand.Rand
}

type line struct {
	b    *bench
	host int
}

func (w line) Send(f *link.Frame, at loop.Time) {
	b := w.b
	to := b.at[1-w.host]
	if to == nil || w.host == 0 && b.lose > 0 && b.random.Float64() < b.lose {
		b.frames.Put(f)
		return
	}
	f.ArriveAt(to, 0)
	b.loop.Arm(&f.Timer, at.Add(time.Microsecond))
}

func newBench(t *testing.T) *bench {
	b := &bench{t: t, loop: loop.NewReal(1, time.Now()), random: rand.New(rand.NewSource(1))}
	t.Cleanup(b.loop.Close)
	return b
}

func addr(host int) roce.Addr {
	return roce.AddrFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(1 + host)}))
}

// sockets are two ends of a connection.
func sockets(t *testing.T) (a, b *net.UnixConn) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range []**net.UnixConn{&a, &b} {
		f := os.NewFile(uintptr(fds[i]), "socket")
		conn, err := net.FileConn(f)
		f.Close()
		if err != nil {
			t.Fatal(err)
		}
		*c = conn.(*net.UnixConn)
	}
	return a, b
}

// open makes a device of a host, a server for it, and a client.
func (b *bench) open(host int) (*Client, error) {
	var d *rnic.Device
	var err error
	if derr := b.loop.Do(context.Background(), func() {
		d, err = rnic.New(rnic.Config{
			Name: fmt.Sprintf("h%d", host+1), Loop: b.loop, Addr: addr(host), MTU: 4200, Rate: 10e9, Seed: 1, Profile: rnic.Default(),
			Frames: &b.frames, Wire: line{b, host},
			Resolve: func(a roce.Addr) (rnic.Neighbor, bool) { return rnic.Neighbor{}, a == addr(0) || a == addr(1) },
		})
		if b.at[host] == nil {
			b.at[host] = d
		}
	}); derr != nil || err != nil {
		return nil, errors.Join(derr, err)
	}
	conn, theirs := sockets(b.t)
	files, theirFiles := sockets(b.t)
	s := NewServer(b.loop, []Adopter{d}, theirs, theirFiles, func(ask []byte, answer func([]byte, error)) { answer(ask, nil) })
	served := make(chan error, 1)
	go func() { served <- s.Serve() }()
	l := loop.NewReal(1, time.Now())
	c, dec, err := Dial(l, conn, files)
	if err != nil {
		return nil, err
	}
	c.Run(dec)
	b.t.Cleanup(func() {
		if err := errors.Join(c.Close(), <-served, theirs.Close(), theirFiles.Close()); err != nil {
			b.t.Error(err)
		}
		l.Close()
	})
	return c, nil
}

func TestDevicesElsewhereConformToTheSpecification(t *testing.T) {
	b := newBench(t)
	conformance.Run(t, conformance.Provider{
		Name: "rnic in another process",
		Open: func(host int) (conformance.Endpoint, error) {
			c, err := b.open(host)
			if err != nil {
				return conformance.Endpoint{}, err
			}
			return conformance.Endpoint{Device: c.Devices()[0], GID: addr(host).Netip()}, nil
		},
		Wait: func(done <-chan struct{}) error {
			select {
			case <-done:
				return nil
			case <-time.After(testPatience):
				return fmt.Errorf("nothing for %v", testPatience)
			}
		},
		Lose: func(fraction float64) (func() error, error) {
			set := func(v float64) error { return b.loop.Do(context.Background(), func() { b.lose = v }) }
			return func() error { return set(0) }, set(fraction)
		},
	})
}
