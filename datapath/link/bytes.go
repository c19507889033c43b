package link

import "github.com/rocebed/rocebed/datapath/roce"

// Parse makes f the byte form of a frame, and sets all that stands in the bytes: Len, Kind, TrafficClass and
// TTL. With an error, View.Parse's, f is what is sound of it. The bytes are f's from then on.
func (f *Frame) Parse(b []byte) error {
	err := f.View.Parse(b)
	f.Bytes, f.Len, f.Kind = b, int32(len(b)), f.View.Kind()
	if f.Kind >= roce.KindIP {
		f.TrafficClass, f.TTL = f.View.TrafficClass(), f.View.TTL()
	}
	return err
}

// Classify sets what a switch routes a frame in byte form by: Dst, which number gives for its
// destination's address, and Flow. What is not IP has neither.
func (f *Frame) Classify(number func(roce.Addr) uint32) {
	f.Dst = NoDst
	v := &f.View
	if f.Kind < roce.KindIP {
		return
	}
	src, dst := v.SrcAddr(), v.DstAddr()
	f.Dst = number(dst)
	var sport, dport uint16
	switch proto := v.Protocol(); {
	case f.Kind >= roce.KindUDP:
		sport, dport = v.SrcPort(), v.DstPort()
	case proto == roce.ProtocolTCP && !v.Fragment():
		if l4 := v.L4(); len(l4) >= 4 {
			sport, dport = uint16(l4[0])<<8|uint16(l4[1]), uint16(l4[2])<<8|uint16(l4[3])
		}
	}
	f.Flow = FlowHash(src, dst, v.Protocol(), sport, dport)
}

// Flush writes what was changed in the frame alone, TrafficClass and TTL, into its byte form.
func (f *Frame) Flush() {
	if f.Bytes == nil || f.Kind < roce.KindIP {
		return
	}
	if f.View.TrafficClass() != f.TrafficClass {
		f.View.SetTrafficClass(f.TrafficClass)
	}
	if f.View.TTL() != f.TTL {
		f.View.SetTTL(f.TTL)
	}
}
