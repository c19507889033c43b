/* Departure: what a port sends passes the near end of its cable, where programs may write. */
#pragma once

#include "port_headers.h"

/* The port that sends into an end of a cable, by the end's index. */
struct {
	__uint(type, MAP_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} departures SEC(".maps");

struct marks {
	__u64 seen, marked; /* ECN-capable frames, and those that were marked */
	__u64 wrong;        /* frames of which one of the curve in force and the right one marks, by the same lot */
};

struct {
	__uint(type, MAP_ARRAY);
	__uint(max_entries, MAX_PORTS * PRIORITIES);
	__type(key, __u32);
	__type(value, struct marks);
} marks SEC(".maps");

/* marks_at is the curve: kmax 0 never marks. */
INLINE int marks_at(__u64 bytes, __u32 lot, __u32 kmin, __u32 kmax, __u64 slope)
{
	return kmax && bytes > kmin && (bytes > kmax || lot < (bytes - kmin) * slope >> 8);
}

/* mark is DCQCN's congestion point: as a frame departs, by lot, on the bytes that it leaves behind in the queue that it was in, whatever its DSCP. */
SEC("tc")
int mark(struct __sk_buff *skb)
{
	__u32 end = skb->ifindex, *port = map_lookup(&departures, &end), qi;
	struct port_conf *c = port ? map_lookup(&port_confs, port) : NULL;
	struct port_state *p = port ? map_lookup(&port_states, port) : NULL;
	struct queue_conf *qc;
	struct marks *m;
	__u8 b[2], tos, i;
	__u64 bytes;
	__u32 lot;
	int is, was;

	if (!c || !p || (skb->cb[0] & ~7) != JOINED)
		return ACT_UNSPEC; /* on to the cable */
	if (load_bytes(skb, 14, b, 2))
		return ACT_UNSPEC;
	if (skb->protocol == ETH_IPV4)
		tos = b[1];
	else if (skb->protocol == ETH_IPV6)
		tos = b[0] << 4 | b[1] >> 4;
	else
		return ACT_UNSPEC;
	if ((tos & 3) == 0 || (tos & 3) == 3)
		return ACT_UNSPEC;
	i = skb->cb[0] & 7;
	qc = &c->queue[i];
	if (!qc->kmax && !qc->wrong)
		return ACT_UNSPEC;
	qi = *port * PRIORITIES + i;
	m = map_lookup(&marks, &qi);
	if (!m)
		return ACT_UNSPEC;
	COUNT(m->seen);
	bytes = p->queue[i].bytes;
	lot = random32();
	is = marks_at(bytes, lot, qc->kmin, qc->kmax, qc->slope);
	if (qc->wrong) {
		was = marks_at(bytes, lot, qc->right_kmin, qc->right_kmax, qc->right_slope);
		if (is != was)
			COUNT(m->wrong);
	}
	if (is) {
		ecn_set_ce(skb);
		COUNT(m->marked);
	}
	return ACT_UNSPEC;
}
