package packet

import (
	"encoding/binary"

	"github.com/rocebed/rocebed/datapath/roce"
)

// The flat form: what a program in C needs, little endian, every field at a multiple of its size.
//
//	struct rb_rule {                    // 104 bytes
//	    __u32 classes;                  //   0  bit per class, in the order of Class's constants
//	    __u8  positions, ways, ecn, flags; // 4
//	    __u64 dscp;                     //   8
//	    struct { __u32 from, to; } psn[4]; // 16  both included
//	    __u32 passes;                   //  48
//	    __u32 first, last, every;       //  52
//	    __u64 threshold;                //  64
//	    __u16 event, act;               //  72
//	    __u8  part, dscp_to;            //  76
//	    __u16 truncate, hold, copies;   //  78
//	    __u32 pad;                      //  84
//	    __u64 delay_ns, at_most_ns;     //  88
//	};
//	struct rb_key   { __u8 addr[16]; __u32 qpn; };          // 20 bytes; IPv4 as ::ffff:a.b.c.d, qpn in host order
//	struct rb_entry {                   // 56 bytes
//	    __u32 list, len;                //   0  in the array of __u16 rule numbers
//	    __u32 base[2];                  //   8
//	    __s32 passes[4], rounds[4];     //  16
//	    __u32 flow;                     //  48
//	    __u8  way, pad[3];              //  52
//	};
//	struct rb_round { __u32 next, n; };  // begins as {0, 1}
//	struct rb_count { __u64 seen, hits; };
//	__u32 passes[]: psn << 8 | pass      // begin as 0
//
// For each packet:
//
//  1. entry = entries[key(IP destination, BTH destination QP)], or entries[0] where there is none or the packet is no RoCE.
//  2. class, position and stream follow from the opcode; of an Acknowledge class and stream follow from the AETH's syndrome
//     (facts.go: streams are 0 requests, 1 responses with data, 2 ACKs, 3 NAKs; the rest has none).
//  3. With a stream and flow ≠ 0: psn = (BTH's − base[stream ≠ 0]) mod 2^24.
//     passes[stream] ≥ 0: p = &passes[passes[stream] + (psn mod window)]; if *p == 0 or *p >> 8 ≠ psn then *p = psn << 8;
//     if (*p & 255) < 255 then ++*p; pass = *p & 255.
//     rounds[stream] ≥ 0: r = &rounds[rounds[stream]]; if psn ≠ r.next then ++r.n, else if the position has First then r.n = 1;
//     r.next = (psn + 1) mod 2^24; round = r.n.
//  4. For each rule of the entry's list, in order: all of
//     classes & class, positions & position, dscp >> DSCP & 1, ecn >> ECN & 1;
//     if flags: there is a stream; flags & 1: psn is in one of the ranges;
//     flags & 2: passes >> (min(flags & 4 ? round : pass, 32) − 1) & 1.
//     Ways is in the lists already. If all hold: n = ++counts[event].seen, and
//     first ≠ 0: first ≤ n, and n ≤ last unless last is 2^32 − 1;
//     every ≠ 0: n mod every = 0;
//     threshold ≠ 2^64 − 1: draw(seed, event, n − 1) < threshold.
//     If these hold too: ++counts[event].hits, and act is added to the verdict (Verdict has how; bits in the order of Verbs).
//     An act of drop ends the list.
const (
	RuleLen  = 104
	KeyLen   = 20
	EntryLen = 56
)

// Encode appends the rules in flat form.
func (p *Program) Encode(b []byte) []byte {
	for i := range p.Rules {
		b = p.Rules[i].Encode(b)
	}
	return b
}

// Encode appends a rule in flat form.
func (r *Rule) Encode(b []byte) []byte {
	le := binary.LittleEndian
	b = le.AppendUint32(b, uint32(r.Classes))
	b = append(b, uint8(r.Positions), r.Ways, r.ECN, r.Flags)
	b = le.AppendUint64(b, r.DSCP)
	for _, x := range r.PSN {
		b = le.AppendUint32(le.AppendUint32(b, x.From), x.To)
	}
	for _, x := range []uint32{r.Passes, r.First, r.Last, r.Every} {
		b = le.AppendUint32(b, x)
	}
	b = le.AppendUint64(b, r.Threshold)
	b = le.AppendUint16(le.AppendUint16(b, r.Event), r.Do)
	b = append(b, r.Part, r.SetDSCP)
	for _, x := range []uint16{r.Truncate, r.Hold, r.Copies} {
		b = le.AppendUint16(b, x)
	}
	b = le.AppendUint32(b, 0)
	return le.AppendUint64(le.AppendUint64(b, r.Delay), r.AtMost)
}

// Encode appends a key in flat form.
func (k *Key) Encode(b []byte) []byte {
	return binary.LittleEndian.AppendUint32(append(b, k.Addr[:]...), k.QPN)
}

// Encode appends an entry in flat form.
func (e *Entry) Encode(b []byte) []byte {
	le := binary.LittleEndian
	for _, x := range []uint32{e.List, e.Len, e.Base[0], e.Base[1]} {
		b = le.AppendUint32(b, x)
	}
	for _, all := range [][streams]int32{e.Passes, e.Rounds} {
		for _, x := range all {
			b = le.AppendUint32(b, uint32(x))
		}
	}
	b = le.AppendUint32(b, e.Flow)
	return append(b, e.Way, 0, 0, 0)
}

// OpLen is the length of an opcode in flat form.
const OpLen = 8

// Opcodes are what each opcode says of a packet, for programs that classify by themselves:
//
//	struct rb_op { __u32 class; __u8 position, stream, header, pad; }; // header: of BTH and extensions, bytes; stream 4: none
//
// The class of an acknowledgement is Ack, and the AETH right behind its BTH says more: Syndromes.
func Opcodes() []byte {
	var b []byte
	for i := range opcodes {
		o := &opcodes[i]
		b = binary.LittleEndian.AppendUint32(b, uint32(o.class))
		b = append(b, uint8(o.position), uint8(o.stream), roce.Opcode(i).Info().HeaderLen, 0)
	}
	return b
}

// Syndromes are the classes of acknowledgements by their AETH's first byte, 4 bytes each. What isn't Ack is of stream 3.
func Syndromes() []byte {
	var b []byte
	for _, c := range syndromes {
		b = binary.LittleEndian.AppendUint32(b, uint32(c))
	}
	return b
}
