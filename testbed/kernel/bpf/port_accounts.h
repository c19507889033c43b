/* The accounts of a packet memory, as datapath/asic/memory.go keeps them. The node's lock is held. */
#pragma once

#include "port_tables.h"

INLINE __u64 beyond(__u64 n, __u64 reserved) { return n > reserved ? n - reserved : 0; }

INLINE __u64 threshold(const struct group_conf *c, __u64 left) { return c->alpha ? left * c->alpha >> 10 : c->xoff; }

#define ADMITTED 1
#define PAUSES 2  /* the group reached its threshold */
#define HEADROOM 4 /* no headroom was left */

INLINE int admit_lossless(struct node *n, __u64 shared, struct group *g, const struct group_conf *c, __u64 len)
{
	__u64 left = beyond(shared, n->used);
	__u64 over = beyond(g->held + len, c->reserved), grows = over - beyond(g->held, c->reserved);
	int did = ADMITTED;

	if (over <= threshold(c, left) && grows <= left) {
		g->held += len;
		n->used += grows;
	} else if (g->head + len <= c->headroom) {
		g->head += len;
		if (g->head > g->head_high)
			g->head_high = g->head;
	} else {
		g->headroom_drops++;
		did = HEADROOM;
	}
	if (!g->xoff && (did == HEADROOM || g->head > 0 || over >= threshold(c, beyond(shared, n->used)))) {
		g->xoff = 1;
		g->xoffs++;
		did |= PAUSES;
	}
	return did;
}

INLINE int resumes(struct node *n, __u64 shared, struct group *g, const struct group_conf *c)
{
	__u64 over = beyond(g->held, c->reserved);

	if (g->head > 0)
		return 0;
	if (!over)
		return 1;
	return over + c->xon <= threshold(c, beyond(shared, n->used));
}

INLINE int admit_lossy(struct node *n, __u64 shared, struct port_state *p, struct queue *q, const struct queue_conf *c, __u64 len)
{
	__u64 left = beyond(shared, n->used);
	__u64 over = beyond(q->lossy + len, c->reserved), grows = over - beyond(q->lossy, c->reserved);

	if (over && (over > (left * c->alpha >> 10) || grows > left))
		return 0;
	q->lossy += len;
	n->used += grows;
	return ADMITTED;
}
