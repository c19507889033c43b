/* The first pause frame of a pause, which the kernel sends by itself: a clone of the frame that found the threshold reached, rewritten on its way out. */
#pragma once

#include "port_headers.h"

/* What a clone that is to become a pause frame is marked with, and its priority. */
#define PAUSE_MARK 0x726f6300

/* A frame of a group that asks for a pause, and whose peer has not been told: tell it. The frame that came in lends a clone. */
INLINE void tell_peer(struct __sk_buff *skb, __u32 port, const struct port_conf *c)
{
	__u8 b[2], tos, i;
	struct group *g;
	__u32 gi;

	if (load_bytes(skb, 14, b, 2))
		return;
	tos = skb->protocol == ETH_IPV4 ? b[1] : b[0] << 4 | b[1] >> 4;
	i = c->priority[tos >> 2 & 63] & 7;
	gi = port * PRIORITIES + i;
	g = map_lookup(&groups, &gi);
	if (!g || !g->xoff || g->told || !(c->sends >> i & 1))
		return;
	if (__sync_lock_test_and_set(&g->told, 1)) /* another processor was first */
		return;
	tell(now_ns(), port, EVENT_TOLD, i);
	skb->mark = PAUSE_MARK | i;
	if (!clone_redirect(skb, skb->ifindex, 0))
		COUNT(g->tx_pause);
	skb->mark = 0;
}

/* Departure into the port's queues: what arrive marked becomes a pause frame. */
SEC("tc")
int pause(struct __sk_buff *skb)
{
	__u32 at = skb->ifindex, *port, i = skb->mark & 7;
	struct port_conf *c;
	__u8 f[60] = {0x01, 0x80, 0xc2, 0, 0, 0x01};

	if ((skb->mark & ~7) != PAUSE_MARK)
		return ACT_UNSPEC;
	port = map_lookup(&arrivals, &at);
	c = port ? map_lookup(&port_confs, port) : NULL;
	if (!c || change_tail(skb, 60, 0))
		return ACT_SHOT;
	__builtin_memcpy(f + 6, c->mac, 6);
	f[12] = 0x88, f[13] = 0x08, f[14] = 0x01, f[15] = 0x01;
	f[17] = 1 << i;
	f[18 + 2 * i] = f[19 + 2 * i] = 0xff;
	if (store_bytes(skb, 0, f, 60, 0))
		return ACT_SHOT;
	skb->mark = 0;
	return ACT_UNSPEC;
}
