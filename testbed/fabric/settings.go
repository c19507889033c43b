package fabric

import (
	"errors"

	"github.com/rocebed/rocebed/topo"
	"github.com/rocebed/rocebed/topo/strict"
)

// NICSettings hold for every host NIC of a fabric. The zero value is the default.
type NICSettings struct {
	// RDMA is the RDMA subsystem's namespace mode on the kernel backend: shared (rdma_cm works;
	// costs devices × namespaces), exclusive, or auto: shared up to 8 hosts, exclusive above.
	RDMA RDMAMode `yaml:"rdma"`
}

// RDMAMode is how RDMA devices relate to network namespaces.
type RDMAMode string

// The modes. The empty mode is auto.
const (
	RDMAAuto      RDMAMode = "auto"
	RDMAShared    RDMAMode = "shared"
	RDMAExclusive RDMAMode = "exclusive"
)

// Validate says what is wrong, as strict.PathErrors.
func (s *NICSettings) Validate() error {
	switch s.RDMA {
	case "", RDMAAuto, RDMAShared, RDMAExclusive:
		return nil
	}
	return strict.At("rdma", "%q is no mode%s", s.RDMA, strict.DidYouMean(string(s.RDMA), []string{string(RDMAAuto), string(RDMAShared), string(RDMAExclusive)}))
}

// SwitchSettings hold for every switch of a fabric. The zero value is the default. Sizes are
// bytes of packets as they stand in the queue; dilation doesn't change them.
type SwitchSettings struct {
	// Buffer is what one egress port may queue before it drops; default DefaultBuffer.
	Buffer topo.Bytes `yaml:"buffer"`
	// ECN is the marker of every egress queue; absent: nothing is marked.
	ECN *ECNSettings `yaml:"ecn"`
}

// DefaultBuffer holds four rxe QPs' worth of unacknowledged packets (128 each) at IB MTU 4096.
const DefaultBuffer topo.Bytes = 2 << 20

// BufferBytes is Buffer or its default.
func (s *SwitchSettings) BufferBytes() topo.Bytes {
	if s.Buffer == 0 {
		return DefaultBuffer
	}
	return s.Buffer
}

// Marker says what marks.
type Marker string

// The markers. The empty marker is red.
const (
	MarkerRED Marker = "red" // sch_red on the instantaneous queue, never dropping
)

// ECNSettings say when a queue marks CE: never below KMin, with a probability that rises to
// PMax at KMax, always above.
type ECNSettings struct {
	Marker Marker        `yaml:"marker"`
	KMin   topo.Bytes    `yaml:"kmin,required"`
	KMax   topo.Bytes    `yaml:"kmax,required"`
	PMax   topo.Fraction `yaml:"pmax,required"`
}

// Validate says what is wrong, as strict.PathErrors.
func (s *SwitchSettings) Validate() error {
	var errs []error
	if s.Buffer != 0 && s.Buffer < 10_000 {
		errs = append(errs, strict.At("buffer", "%v doesn't hold one packet of every MTU: at least 10KB", s.Buffer))
	}
	if e := s.ECN; e != nil {
		if e.Marker != "" && e.Marker != MarkerRED {
			errs = append(errs, strict.At("ecn.marker", "%q is no marker%s", e.Marker, strict.DidYouMean(string(e.Marker), []string{string(MarkerRED)})))
		}
		if e.KMin == 0 || e.KMin >= e.KMax {
			errs = append(errs, strict.At("ecn.kmin", "%v must be above 0 and below kmax %v", e.KMin, e.KMax))
		}
		if e.KMax > s.BufferBytes() {
			errs = append(errs, strict.At("ecn.kmax", "%v is above the port's buffer of %v: it would drop before it marks", e.KMax, s.BufferBytes()))
		}
		if e.PMax == 0 {
			errs = append(errs, strict.At("ecn.pmax", "must be above 0%%"))
		}
	}
	return errors.Join(errs...)
}
