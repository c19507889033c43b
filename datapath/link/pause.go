package link

import (
	"time"

	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/datapath/roce"
)

// Paused is what a transmitter was told to keep back, by priority (802.1Qbb; 802.3x tells all
// alike). The zero value is a port that nobody paused.
type Paused struct {
	until [8]loop.Time
	since [8]loop.Time // start of the pause that until ends
	spent [8]time.Duration
}

// Take obeys a pause frame that arrived now at a line of a rate in bits a second. It says
// which priorities' state it touched.
func (p *Paused) Take(now loop.Time, rate uint64, f *roce.PFC) (touched uint8) {
	for i := range p.until {
		if f.Enabled&(1<<i) == 0 {
			continue
		}
		p.settle(now, i)
		until := now.Add(roce.QuantaTime(f.Quanta[i], int64(rate)))
		if p.until[i] <= now {
			p.since[i] = now
		}
		p.until[i] = until
	}
	return f.Enabled
}

// Until is when the priority may send again; not after now when it may.
func (p *Paused) Until(priority uint8) loop.Time { return p.until[priority&7] }

// Holds says whether the priority is paused now.
func (p *Paused) Holds(now loop.Time, priority uint8) bool { return p.until[priority&7] > now }

// Time is for how long the priority was paused up to now.
func (p *Paused) Time(now loop.Time, priority uint8) time.Duration {
	p.settle(now, int(priority&7))
	return p.spent[priority&7]
}

// settle accounts the time of the current pause up to now.
func (p *Paused) settle(now loop.Time, i int) {
	if end := min(now, p.until[i]); end > p.since[i] {
		p.spent[i] += end.Sub(p.since[i])
		p.since[i] = end
	}
}
