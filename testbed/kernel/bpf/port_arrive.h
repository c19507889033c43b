/* Arrival: what comes in at a port of a switch or a host: pauses, CNPs, and marked packets that are due one. */
#pragma once

#include "port_headers.h"
#include "port_pause.h"

struct arrival_counts {
	__u64 marked;    /* RoCE packets with data that came CE-marked */
	__u64 cnps;      /* CNPs that came in */
	__u64 held_back; /* marked packets whose flow had had its notice within the interval */
};

struct {
	__uint(type, MAP_ARRAY);
	__uint(max_entries, MAX_PORTS);
	__type(key, __u32);
	__type(value, struct arrival_counts);
} arrival_counts SEC(".maps");

/* When a flow of marked packets was told of last. */
struct notice_key {
	__u8 saddr[16];
	__u32 qpn;
	__u32 port;
};

struct {
	__uint(type, MAP_LRU_HASH);
	__uint(max_entries, 8192);
	__type(key, struct notice_key);
	__type(value, __u64);
} notices SEC(".maps");

INLINE void take_pauses(struct __sk_buff *skb, __u32 port, const struct port_conf *c, struct port_state *p)
{
	__u8 b[18];
	__u64 now = now_ns();
	__u8 opcode[2];

	if (load_bytes(skb, 14, opcode, 2) || opcode[0] != 1 || opcode[1] != 1 || load_bytes(skb, 16, b, sizeof b))
		return;
	/* after the opcode: the vector of priorities that it speaks of, then eight times */
	for (int i = 0; i < PRIORITIES; i++) {
		struct queue *q = &p->queue[i];
		__u64 quanta = (__u64)b[2 + 2 * i] << 8 | b[3 + 2 * i];
		int was;

		if (!(b[1] >> i & 1))
			continue;
		was = q->until > now;
		COUNT(q->rx_pause);
		if (!was && q->until)
			q->paused += q->until - q->since; /* it ran out */
		if (quanta) {
			q->until = now + (quanta * c->quantum >> 16);
			if (!was) {
				q->since = now;
				COUNT(q->rx_xoff);
			}
			tell(now, port, EVENT_OBEYED, i);
		} else {
			if (was)
				q->paused += now - q->since;
			q->until = 0;
		}
	}
}

INLINE int take_roce(struct __sk_buff *skb, __u32 port, const struct port_conf *c, __u64 interval)
{
	struct notice_key k = {.port = port};
	struct arrival_counts *n = map_lookup(&arrival_counts, &port);
	__u8 b[64], *bth, tos;
	__u16 dport;
	struct event *e;
	__u64 now, *last;
	int cnp;

	if (!n)
		return 0;
	if (skb->protocol == ETH_IPV4) {
		if (load_bytes(skb, 14, b, 36) || b[0] != 0x45 || b[9] != 17)
			return 0;
		tos = b[1];
		dport = *(__u16 *)(b + 22);
		k.saddr[10] = k.saddr[11] = 0xff;
		__builtin_memcpy(k.saddr + 12, b + 12, 4);
		bth = b + 28;
	} else {
		if (load_bytes(skb, 14, b, 56) || b[6] != 17)
			return 0;
		tos = b[0] << 4 | b[1] >> 4;
		dport = *(__u16 *)(b + 42);
		__builtin_memcpy(k.saddr, b + 8, 16);
		bth = b + 48;
	}
	if (dport != ROCE_PORT)
		return 0;
	cnp = bth[0] == 0x81;
	if (!cnp && ((tos & 3) != 3 || stream_of(bth[0]) > 1))
		return 0;
	k.qpn = (__u32)bth[5] << 16 | (__u32)bth[6] << 8 | bth[7];
	now = now_ns();
	if (cnp) {
		COUNT(n->cnps);
	} else {
		COUNT(n->marked);
		last = map_lookup(&notices, &k);
		if (last && now - *last < interval) {
			COUNT(n->held_back);
			return 0;
		}
		if (last)
			*last = now;
		else
			map_update(&notices, &k, &now, BPF_ANY);
	}
	e = ringbuf_reserve(&events, sizeof *e, 0);
	if (!e) {
		COUNT(events_lost);
		return cnp;
	}
	e->at = now;
	e->port = port;
	e->kind = cnp ? EVENT_CNP : EVENT_MARKED;
	e->priority = 0;
	e->qpn = k.qpn;
	__builtin_memcpy(e->saddr, k.saddr, 16);
	ringbuf_submit(e, 0);
	return cnp;
}

SEC("tc")
int arrive(struct __sk_buff *skb)
{
	__u32 at = skb->ifindex, *port = map_lookup(&arrivals, &at);
	struct port_conf *c = port ? map_lookup(&port_confs, port) : NULL;
	struct port_state *p = port ? map_lookup(&port_states, port) : NULL;

	if (!c || !p)
		return ACT_UNSPEC;
	if (skb->protocol == ETH_PAUSE) {
		take_pauses(skb, *port, c, p);
		return ACT_STOLEN; /* it ends here, and is no loss */
	}
	if (c->sends && (skb->protocol == ETH_IPV4 || skb->protocol == ETH_IPV6))
		tell_peer(skb, *port, c);
	if (c->paced && (skb->protocol == ETH_IPV4 || skb->protocol == ETH_IPV6) && take_roce(skb, *port, c, c->notice))
		return ACT_STOLEN; /* a CNP: it was for the NIC */
	return ACT_UNSPEC;
}
