/* What of a frame decides where it goes: its DSCP, whether it is a pause, and of RoCE the queue pair and what kind of packet it is. */
#pragma once

#include "port_tables.h"

#define ETH_IPV4 0x0008
#define ETH_IPV6 0xdd86
#define ETH_PAUSE 0x0888
#define ROCE_PORT 0xb712 /* 4791 in network order */

struct head {
	__u8 dscp;
	__u8 pause;
	__u8 roce;
	__u8 opcode;
	__u32 qpn;
	__u8 daddr[16];
};

/* A frame carries on its way out which queue it joined, for its cable, which marks it: a switch's marking profile is its queue's. The kernel keeps what a queueing discipline
 * notes of a frame, in its control buffer, until another one takes the frame or the stack does. */
#define JOINED 0x726f6280

INLINE void joins(struct sk_buff *skb, __u32 queue) { *(__u32 *)&((struct qdisc_skb_cb *)skb->cb)->data[0] = JOINED | queue; }

/* Reads BTH at b, of a packet to UDP's port of RoCE. */
INLINE void read_bth(struct head *h, const __u8 *b)
{
	h->roce = 1;
	h->opcode = b[0];
	h->qpn = (__u32)b[5] << 16 | (__u32)b[6] << 8 | b[7];
}

INLINE void read_head(struct sk_buff *skb, struct head *h)
{
	struct bpf_dynptr d;
	__u8 buf[74] = {}, *b;
	__u32 len = packet_len(skb);
	__u16 type;

	h->dscp = 0;
	h->roce = 0;
	h->pause = 0;
	if (bpf_dynptr_from_skb(skb, 0, &d))
		return;
	b = bpf_dynptr_slice(&d, 0, buf, 34);
	if (!b)
		return;
	type = *(__u16 *)(b + 12);
	h->pause = type == ETH_PAUSE;
	if (type == ETH_IPV4) {
		h->dscp = b[15] >> 2;
		b = len >= 58 ? bpf_dynptr_slice(&d, 0, buf, 58) : NULL;
		if (!b || b[14] != 0x45 || b[23] != 17 || *(__u16 *)(b + 36) != ROCE_PORT)
			return;
		read_bth(h, b + 42);
		__builtin_memset(h->daddr, 0, 10);
		h->daddr[10] = h->daddr[11] = 0xff;
		__builtin_memcpy(h->daddr + 12, b + 30, 4);
	} else if (type == ETH_IPV6) {
		h->dscp = (b[14] & 15) << 2 | b[15] >> 6;
		b = len >= 74 ? bpf_dynptr_slice(&d, 0, buf, 74) : NULL;
		if (!b || b[20] != 17 || *(__u16 *)(b + 56) != ROCE_PORT)
			return;
		read_bth(h, b + 62);
		__builtin_memcpy(h->daddr, b + 38, 16);
	}
}

/* What RC opcodes are: 0 requests, 1 READ responses and answers to atomics, 2 acknowledgements, 3 the rest. */
INLINE int stream_of(__u8 opcode)
{
	if (opcode == 0x81)
		return 3;
	opcode &= 0x1f;
	if (opcode == 17)
		return 2;
	if (opcode >= 13 && opcode <= 18)
		return 1;
	return 0;
}
