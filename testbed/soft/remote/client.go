//go:build linux

package remote

import (
	"bufio"
	"encoding/gob"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/workloads/verbs"
)

// ErrEnded says that the process with the devices has ended.
var ErrEnded = errors.New("the host's process has ended")

// errSilent says that the process has not answered: it was stopped, or has no processor.
var errSilent = errors.New("the host's process does not answer")

// patience is how long posting and polling wait for an answer, in wall time, allocating memory and closing longer.
const (
	patience     = 50 * time.Millisecond
	longPatience = 5 * time.Second
)

// Client is the other end of a Server.
type Client struct {
	loop    loop.Loop
	conn    *net.UnixConn
	files   *net.UnixConn
	out     *bufio.Writer
	enc     *gob.Encoder
	devices []*device

	// Owned by the loop.
	seq     uint64
	ids     uint32
	pending map[uint64]func(*answer, error)
	objects map[uint32]any
	silent  time.Time // until when nobody waits for an answer again

	mu      sync.Mutex
	waiting map[uint64]chan *answer
	late    map[uint64]func(*answer) // what is to be done with answers that nobody waits for any more
	ended   bool
	reader  sync.WaitGroup
}

// Dial reads what devices the server has. The loop is where they are used; Run must be called next.
func Dial(l loop.Loop, conn, files *net.UnixConn) (*Client, *gob.Decoder, error) {
	c := &Client{
		loop: l, conn: conn, files: files, out: bufio.NewWriter(conn),
		pending: map[uint64]func(*answer, error){}, objects: map[uint32]any{}, waiting: map[uint64]chan *answer{}, late: map[uint64]func(*answer){},
	}
	c.enc = gob.NewEncoder(c.out)
	dec := gob.NewDecoder(bufio.NewReader(conn))
	var abouts []About
	if err := dec.Decode(&abouts); err != nil {
		return nil, nil, fmt.Errorf("hear of the devices of the host's process: %w", err)
	}
	for i, a := range abouts {
		c.devices = append(c.devices, &device{c: c, n: i, about: a})
	}
	return c, dec, nil
}

// Run begins to listen for answers.
func (c *Client) Run(dec *gob.Decoder) { c.reader.Go(func() { c.read(dec) }) }

// Devices are the server's, on this side.
func (c *Client) Devices() []verbs.Device {
	out := make([]verbs.Device, len(c.devices))
	for i, d := range c.devices {
		out[i] = d
	}
	return out
}

// Close ends the connection.
func (c *Client) Close() error {
	err := errors.Join(c.conn.Close(), c.files.Close())
	c.reader.Wait()
	return err
}

func (c *Client) read(dec *gob.Decoder) {
	for {
		a := new(answer)
		if err := dec.Decode(a); err != nil {
			break
		}
		c.mu.Lock()
		ch := c.waiting[a.Seq]
		delete(c.waiting, a.Seq)
		late, isLate := c.late[a.Seq]
		delete(c.late, a.Seq)
		if ch != nil {
			ch <- a // it has room for one
		}
		c.mu.Unlock()
		switch {
		case ch != nil:
			continue
		case isLate:
			c.loop.Post(func() {
				c.states(a)
				late(a)
			})
			continue
		}
		c.loop.Post(func() { c.hear(a) })
	}
	c.mu.Lock()
	c.ended = true
	for seq, ch := range c.waiting {
		close(ch)
		delete(c.waiting, seq)
	}
	c.mu.Unlock()
	c.loop.Post(func() {
		pending := c.pending
		c.pending = map[uint64]func(*answer, error){}
		for _, done := range pending {
			done(&answer{}, ErrEnded)
		}
		for _, d := range c.devices {
			d.event(verbs.AsyncEvent{Type: verbs.EventDeviceFatal})
		}
		// No completion will come: who waits for one polls, asks to be told of the next, and hears ErrEnded.
		for _, id := range slices.Sorted(maps.Keys(c.objects)) {
			if q, ok := c.objects[id].(*cq); ok && !q.dead && q.onEvent != nil {
				q.onEvent(q)
			}
		}
	})
}

func (c *Client) gone() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ended
}

// hear takes what nobody waits for on the spot.
func (c *Client) hear(a *answer) {
	c.states(a)
	switch {
	case a.Seq != 0:
		if done := c.pending[a.Seq]; done != nil {
			delete(c.pending, a.Seq)
			done(a, a.error())
		}
	case a.CQ != 0:
		if cq, ok := c.objects[a.CQ].(*cq); ok && !cq.dead && cq.onEvent != nil {
			cq.onEvent(cq)
		}
	case a.Async:
		e := verbs.AsyncEvent{Type: a.Type}
		switch o := c.objects[a.Object].(type) {
		case *qp:
			e.QP = o
		case *srq:
			e.SRQ = o
		case *cq:
			e.CQ = o
		}
		c.devices[a.Device].event(e)
	}
}

// states takes what an answer says of objects besides the one that was spoken to.
func (c *Client) states(a *answer) {
	for _, st := range a.States {
		if q, ok := c.objects[st.ID].(*qp); ok {
			q.state = st.State
		}
	}
	for _, k := range a.Keys {
		if m, ok := c.objects[k.ID].(*mw); ok {
			m.rkey = k.RKey
		}
	}
}

type remoteError string

func (e remoteError) Error() string { return string(e) }

func (a *answer) error() error {
	if !a.Failed {
		return nil
	}
	return remoteError(a.Err)
}

func (c *Client) send(r *request) error {
	c.seq++
	r.Seq = c.seq
	if c.gone() {
		return ErrEnded
	}
	// A process that was stopped leaves its socket to fill up; nobody is to wait for it here.
	_ = c.conn.SetWriteDeadline(time.Now().Add(longPatience))
	if err := c.enc.Encode(r); err != nil {
		return fmt.Errorf("%w: %w", ErrEnded, err)
	}
	if err := c.out.Flush(); err != nil {
		return fmt.Errorf("%w: %w", ErrEnded, err)
	}
	return nil
}

// call asks for something that completes by callback.
func (c *Client) call(r *request, done func(*answer, error)) {
	if err := c.send(r); err != nil {
		c.loop.Post(func() { done(&answer{}, err) })
		return
	}
	c.pending[r.Seq] = done
}

// ask asks and waits. errSilent says that there was no answer in time; late, on the loop, gets it when it comes.
func (c *Client) ask(r *request, limit time.Duration, late func(*answer)) (*answer, error) {
	ch := make(chan *answer, 1)
	c.mu.Lock()
	if c.ended {
		c.mu.Unlock()
		return &answer{}, ErrEnded
	}
	c.waiting[c.seq+1] = ch
	c.mu.Unlock()
	if err := c.send(r); err != nil {
		return &answer{}, err
	}
	if limit == patience && time.Now().Before(c.silent) {
		limit = 0 // it is known to be stopped: look, but don't wait
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case a, ok := <-ch:
		if !ok {
			return &answer{}, ErrEnded
		}
		c.silent = time.Time{}
		c.states(a)
		return a, a.error()
	case <-timer.C:
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case a, ok := <-ch: // just now
		if !ok {
			return &answer{}, ErrEnded
		}
		c.states(a)
		return a, a.error()
	default:
	}
	delete(c.waiting, r.Seq)
	c.late[r.Seq] = late
	c.silent = time.Now().Add(time.Second)
	return &answer{}, errSilent
}

// Other asks something that is not verbs, from any goroutine.
func (c *Client) Other(b []byte, done func([]byte, error)) {
	c.loop.Post(func() { c.call(&request{Op: opOther, Other: b}, func(a *answer, err error) { done(a.Other, err) }) })
}

func (c *Client) newID() uint32 {
	c.ids++
	return c.ids
}
