package record

import (
	"fmt"
	"time"
)

// RecoveriesFile lists every packet that an event of a fault dropped, and how it was made good.
const RecoveriesFile = "recoveries.json"

// The ways in which a lost packet is made good.
const (
	ByNAK        = "nak"         // the responder's NAK of a sequence error (or selective ACK) for that PSN or one before it came back first
	ByImpliedNAK = "implied-nak" // of a READ response: a later one showed the gap to the requester, which asked again
	ByRNR        = "rnr-nak"     // an RNR NAK made the requester begin again at or before that PSN
	ByTimeout    = "timeout"     // nothing had an effect before the requester's timer ended
	ByLater      = "later"       // of an acknowledgement: a later one said it, too, before anything was sent again
	Never        = "never"       // it was not made good while the capture ran
)

// Recovery is how a packet that a fault of packet events dropped was made good, as the struck link's near end saw it. Times are fabric time.
type Recovery struct {
	Fault     string        `json:"fault" cel:"fault"`
	Event     int           `json:"event" cel:"event"` // the first of the fault's events that hit it, from 0
	At        string        `json:"at" cel:"at"`       // the port that it had left
	Workload  string        `json:"workload" cel:"workload"`
	Flow      int           `json:"flow" cel:"flow"`
	Class     string        `json:"class" cel:"class"`
	PSN       int64         `json:"psn" cel:"psn"`                // relative to the first
	Iteration int           `json:"iteration" cel:"iteration"`    // which pass of its PSN was lost, since the fault was in force
	Lost      time.Duration `json:"lost_ns" cel:"lost"`           // when, since the workloads started
	How       string        `json:"how" cel:"how"`                // by what it was recovered
	Told      time.Duration `json:"told_ns,omitempty" cel:"told"` // since it was lost, when the NAK came by
	Took      time.Duration `json:"took_ns" cel:"took"`           // since it was lost, when it (or what made it good) passed again
}

// String is the recovery in a line.
func (r Recovery) String() string {
	s := fmt.Sprintf("%s PSN %d, iteration %d: ", r.Class, r.PSN, r.Iteration)
	switch r.How {
	case Never:
		return s + "never made good"
	case ByTimeout, ByLater:
		return s + fmt.Sprintf("%s after %v", r.How, r.Took)
	}
	return s + fmt.Sprintf("%s, sent again after %v", r.How, r.Took)
}
