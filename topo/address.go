package topo

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"net/netip"
)

// The IPv4 plan: 10.0.0.0/9 is cut into equal blocks, one for each switch with hosts, of at
// least a /24, so that leaf 3's hosts are 10.0.3.x; links between switches are 10.128.0.0/9.
// The IPv6 plan is the same with a /64 a block under fd52:6f43:4500::/48 ("RoCE" in ASCII,
// of the range that RFC 4193 leaves to local use). On a link the switch's end, or the end
// nearer the core, has the even address.
const (
	v4Hosts  = 10 << 24
	v4Fabric = 10<<24 | 1<<23
	v4Space  = 1 << 23 // addresses in either half

	v6Net    = 0xfd526f4345000000 // upper 64 bits; the low 16 are the block
	v6Fabric = 0xffff             // the block of the links between switches
)

// blockOf is the prefix that covers the hosts' links of the n-th switch with hosts.
func (p *Plan) blockOf(n int, size int) netip.Prefix {
	if p.Options.Family == IPv6 {
		return netip.PrefixFrom(v6(uint64(n+1), 0), 64)
	}
	return netip.PrefixFrom(v4(v4Hosts+uint32(n+1)*uint32(size)), 33-bits.Len32(uint32(size)))
}

func (p *Plan) hostLinkAddr(block, size, offset int) netip.Addr {
	if p.Options.Family == IPv6 {
		return v6(uint64(block+1), uint64(offset))
	}
	return v4(v4Hosts + uint32(block+1)*uint32(size) + uint32(offset))
}

func (p *Plan) fabricLinkAddr(offset int) netip.Addr {
	if p.Options.Family == IPv6 {
		return v6(v6Fabric, uint64(offset))
	}
	return v4(v4Fabric + uint32(offset))
}

func v4(a uint32) netip.Addr {
	var b [4]byte
	binary.BigEndian.PutUint32(b[:], a)
	return netip.AddrFrom4(b)
}

func v6(block, low uint64) netip.Addr {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], v6Net|block)
	binary.BigEndian.PutUint64(b[8:], low)
	return netip.AddrFrom16(b)
}

// macOf numbers ports through the fabric: 02 marks a locally administered address (IEEE 802).
func macOf(port int32) MAC {
	n := uint32(port) + 1
	return MAC{0x02, 0x52, 0x6f, byte(n >> 16), byte(n >> 8), byte(n)}
}

// address gives every port its addresses, and makes a destination class of every block.
func (p *Plan) address() error {
	bitlen := 31
	if p.Options.Family == IPv6 {
		bitlen = 127
	}
	// Which links lead to a host, and how many such links the largest switch has.
	most, blocks, hostLinks, fabricLinks := 0, 0, 0, 0
	for _, s := range p.switches {
		n := 0
		for i := p.base[s]; i < p.base[s+1]; i++ {
			if p.switchNo[p.portNode[p.peer[i]]] < 0 {
				p.edges[i] = true
				n++
			}
		}
		most, hostLinks = max(most, n), hostLinks+n
		if n > 0 {
			blocks++
		}
	}
	fabricLinks = len(p.Topology.Links) - hostLinks
	size := 256
	for size < 2*most {
		size *= 2
	}
	if (blocks+1)*size > v4Space || 2*fabricLinks > v4Space || blocks >= v6Fabric || len(p.ports) >= 1<<24 {
		return fmt.Errorf("%d switches with up to %d hosts' links, %d links between switches: more than the address plan holds", blocks, most, fabricLinks)
	}

	p.classOf = make([]int32, len(p.ports))
	for i := range p.classOf {
		p.classOf[i] = -1
	}
	p.byAddr = make(map[netip.Addr]int32, len(p.ports))
	set := func(port int32, a netip.Addr) {
		p.ports[port].Addr = netip.PrefixFrom(a, bitlen)
		p.byAddr[a] = port
	}
	for no, s := range p.switches {
		offset := 0
		for i := p.base[s]; i < p.base[s+1]; i++ {
			if !p.edges[i] {
				continue
			}
			if offset == 0 {
				p.classes = append(p.classes, class{dst: p.blockOf(len(p.classes), size), at: int32(no), whole: -1})
			}
			block := len(p.classes) - 1
			set(i, p.hostLinkAddr(block, size, offset))
			set(p.peer[i], p.hostLinkAddr(block, size, offset+1))
			p.classOf[p.peer[i]] = int32(block)
			offset += 2
		}
	}
	offset := 0
	for i := range p.Topology.Links {
		l := &p.Topology.Links[i]
		up, low := p.find(l.A), p.find(l.B)
		if p.ports[up].Addr.IsValid() {
			continue
		}
		if p.Topology.Nodes[p.portNode[up]].Tier < p.Topology.Nodes[p.portNode[low]].Tier {
			up, low = low, up
		}
		set(up, p.fabricLinkAddr(offset))
		set(low, p.fabricLinkAddr(offset+1))
		offset += 2
	}
	for i := range p.ports {
		p.ports[i].MAC = macOf(int32(i))
	}
	for i := range p.ports {
		o := &p.ports[p.peer[i]]
		p.ports[i].PeerAddr, p.ports[i].PeerMAC = o.Addr.Addr(), o.MAC
	}
	return nil
}
