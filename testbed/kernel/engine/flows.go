//go:build linux

package engine

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/cilium/ebpf"

	"github.com/rocebed/rocebed/topo"
)

// FlowKey is what a queue pair sends to another, requests and the responses to the other's.
type FlowKey struct {
	Port int // that it leaves by
	To   netip.Addr
	QPN  uint32 // that it is sent to
}

type flowKey struct {
	Addr    [16]byte
	QPN     uint32
	Port, _ uint16
}

func (k FlowKey) encode() flowKey {
	return flowKey{Addr: k.To.As16(), QPN: k.QPN, Port: uint16(k.Port)}
}

// flowState is what a queue pair's requests or its responses do; the clock of its requests is the queue pair's.
type flowState struct {
	AfterIt, BeforeIt  uint32
	List               list
	Bytes, Next, After uint64
	TxFrames, TxBytes  uint64
}

type paceConf struct {
	Cost       uint64
	Closing, _ uint32
}

// flowNumbers are the numbers that nobody has.
type flowNumbers struct {
	spare []uint32
	fresh uint32
}

// ErrFlows means that too many flows have a rate of their own.
var ErrFlows = errors.New("port engine: no more flows can have a rate of their own")

// Flow is what a queue pair sends, at a rate of its own, whichever of its requests and responses. Its methods are not safe for use from several goroutines.
type Flow struct {
	t      *Tables
	key    FlowKey
	number uint32
}

// OpenFlow gives what a queue pair sends a rate of its own: frames that come from now on wait for their turn, behind those of the flow that wait already.
func (t *Tables) OpenFlow(key FlowKey, rate topo.Rate) (*Flow, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	number := t.numbers.fresh + 1
	if n := len(t.numbers.spare); n > 0 {
		number = t.numbers.spare[n-1]
		t.numbers.spare = t.numbers.spare[:n-1]
	} else if int(number) > t.maxFlows {
		return nil, ErrFlows
	} else {
		t.numbers.fresh++
	}
	f := &Flow{t, key, number}
	for _, at := range f.places() {
		if err := t.maps["flows"].Put(at, flowState{}); err != nil {
			return nil, f.failed(err)
		}
	}
	if err := f.SetRate(rate); err != nil {
		return nil, err
	}
	if err := t.maps["pace_numbers"].Update(key.encode(), number, ebpf.UpdateNoExist); err != nil {
		t.numbers.spare = append(t.numbers.spare, number)
		return nil, f.failed(err)
	}
	return f, nil
}

func (f *Flow) failed(err error) error {
	return fmt.Errorf("port engine: flow to %v, QP %#x: %w", f.key.To, f.key.QPN, err)
}

// SetRate changes the rate, for what waits too; 0 is as fast as the line.
func (f *Flow) SetRate(rate topo.Rate) error {
	if err := f.t.maps["pace_confs"].Put(f.number-1, paceConf{Cost: cost(rate)}); err != nil {
		return f.failed(err)
	}
	return nil
}

// places are where its requests and its responses are in the table of flows.
func (f *Flow) places() [2]uint32 { return [2]uint32{2*f.number - 2, 2*f.number - 1} }

// FlowReading is what a flow is doing and has done since it was opened.
type FlowReading struct {
	Packets           int // waiting
	Bytes             uint64
	TxFrames, TxBytes uint64
	ResponsesTxBytes  uint64 // of TxBytes; requests are the rest
}

// Read reads the flow.
func (f *Flow) Read() (r FlowReading, err error) {
	for _, at := range f.places() {
		var s flowState
		if err := f.t.maps["flows"].Lookup(at, &s); err != nil {
			return r, f.failed(err)
		}
		r.Packets, r.Bytes, r.TxFrames, r.TxBytes = r.Packets+int(s.List.Packets), r.Bytes+s.Bytes, r.TxFrames+s.TxFrames, r.TxBytes+s.TxBytes
		r.ResponsesTxBytes = s.TxBytes
	}
	return r, nil
}

// Close takes the flow's rate away once nothing of it waits, so that its frames stay in order: false means that something waits still, as fast
// as the line lets it, and that Close is to be called again.
func (f *Flow) Close() (closed bool, err error) {
	if err := f.t.maps["pace_confs"].Put(f.number-1, paceConf{Closing: 1}); err != nil {
		return false, f.failed(err)
	}
	r, err := f.Read()
	if err != nil || r.Packets > 0 {
		return false, err
	}
	if err := f.t.maps["pace_numbers"].Delete(f.key.encode()); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
		return false, f.failed(err)
	}
	f.t.mu.Lock()
	defer f.t.mu.Unlock()
	f.t.numbers.spare = append(f.t.numbers.spare, f.number)
	return true, nil
}
