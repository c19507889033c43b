//go:build linux

package agent

import "time"

const (
	// believed is for how long of wall time a look-up is good: numbers of queue pairs are given anew, though rxe goes through all of them
	// first.
	believed = 20 * time.Millisecond
	// remembered is how many look-ups are kept before all are forgotten.
	remembered = 8192
)

// peers are the queue pairs that local ones are connected to.
type peers struct {
	ask   func(qpn uint32) (remote uint32, ok bool, err error) // the kernel
	known map[uint32]peer
}

type peer struct {
	remote uint32
	ok     bool
	at     time.Duration
}

func newPeers(ask func(uint32) (uint32, bool, error)) peers { return peers{ask, map[uint32]peer{}} }

// of is the remote queue pair of a local one; false: the kernel has no connected one of the number.
func (p *peers) of(now time.Duration, qpn uint32) (remote uint32, ok bool, err error) {
	if k, had := p.known[qpn]; had && now-k.at < believed {
		return k.remote, k.ok, nil
	}
	if len(p.known) >= remembered {
		clear(p.known)
	}
	k := peer{at: now}
	if k.remote, k.ok, err = p.ask(qpn); err != nil {
		return 0, false, err
	}
	k.ok = k.ok && k.remote != 0
	p.known[qpn] = k
	return k.remote, k.ok, nil
}
