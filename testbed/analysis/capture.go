package analysis

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"time"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
	"github.com/google/gopacket/pcapgo"
)

// RoCEPort is RoCEv2's UDP destination port (IBTA annex A17).
const RoCEPort = 4791

// bthLen is the length of the Base Transport Header in bytes.
const bthLen = 12

// Packet is a RoCEv2 packet of a capture: addresses, marks and its Base Transport Header.
type Packet struct {
	At       time.Duration // fabric time since the fabric started
	Src, Dst netip.Addr
	SrcPort  uint16 // the UDP source port: what ECMP spreads by
	DSCP     uint8
	CE       bool // congestion experienced: ECN bits 11
	Opcode   uint8
	DestQPN  uint32
	PSN      uint32
	AckReq   bool
	Length   int // bytes of the whole frame
}

// ReadCapture gives the RoCEv2 packets of a pcapng capture to each, in order. Other packets
// (ARP, TCP, ICMP) are passed over; a RoCE packet too short for its headers is an error.
func ReadCapture(r io.Reader, each func(Packet) error) error {
	in, err := pcapgo.NewNgReader(r, pcapgo.DefaultNgReaderOptions)
	if err != nil {
		return fmt.Errorf("capture: %w", err)
	}
	var (
		eth   layers.Ethernet
		vlan  layers.Dot1Q
		ip4   layers.IPv4
		ip6   layers.IPv6
		udp   layers.UDP
		found []gopacket.LayerType
	)
	parser := gopacket.NewDecodingLayerParser(layers.LayerTypeEthernet, &eth, &vlan, &ip4, &ip6, &udp)
	parser.IgnoreUnsupported = true
	for n := 1; ; n++ {
		data, info, err := in.ReadPacketData()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("capture: packet %d: %w", n, err)
		}
		// What isn't Ethernet with IP and UDP in it is none of ours, truncated or not.
		if err := parser.DecodeLayers(data, &found); err != nil || len(found) == 0 || found[len(found)-1] != layers.LayerTypeUDP || udp.DstPort != RoCEPort {
			continue
		}
		bth := udp.Payload
		if len(bth) < bthLen {
			return fmt.Errorf("capture: packet %d: %d bytes after the UDP header, a Base Transport Header has %d", n, len(bth), bthLen)
		}
		p := Packet{
			At: time.Duration(info.Timestamp.UnixNano()), SrcPort: uint16(udp.SrcPort), Length: info.Length,
			Opcode: bth[0], DestQPN: binary.BigEndian.Uint32(bth[4:]) & 0xffffff, AckReq: bth[8]&0x80 != 0, PSN: binary.BigEndian.Uint32(bth[8:]) & 0xffffff,
		}
		tos := ip4.TOS
		src, dst := []byte(ip4.SrcIP), []byte(ip4.DstIP)
		if ipLayer(found) == layers.LayerTypeIPv6 {
			tos, src, dst = ip6.TrafficClass, ip6.SrcIP, ip6.DstIP
		}
		p.Src, _ = netip.AddrFromSlice(src)
		p.Dst, _ = netip.AddrFromSlice(dst)
		p.DSCP, p.CE = tos>>2, tos&3 == 3
		if err := each(p); err != nil {
			return err
		}
	}
}

func ipLayer(found []gopacket.LayerType) gopacket.LayerType {
	for _, l := range found {
		if l == layers.LayerTypeIPv4 || l == layers.LayerTypeIPv6 {
			return l
		}
	}
	return gopacket.LayerTypeZero
}
