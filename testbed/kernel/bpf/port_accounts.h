/* The accounts of a packet memory, as datapath/asic/memory.go keeps them. The node's lock is held. */
#pragma once

#include "port_tables.h"

INLINE __u64 beyond(__u64 n, __u64 reserved) { return n > reserved ? n - reserved : 0; }

INLINE __u64 threshold(const struct group_conf *c, __u64 left) { return c->alpha ? left * c->alpha >> 10 : c->xoff; }

/* With less than how much of the shared memory in use a paused group goes on: 0, where it must let go of something itself first. */
INLINE __u64 resumes_below(__u64 shared, const struct group *g, const struct group_conf *c)
{
	__u64 over = beyond(g->held, c->reserved), need;

	if (g->head)
		return 0;
	if (!over)
		return ~0ULL;
	if (!c->alpha)
		return over + c->xon <= c->xoff ? ~0ULL : 0;
	/* alpha * (shared - used) >= over + xon, in whole bytes */
	need = (((over + c->xon) << 10) + c->alpha - 1) / c->alpha;
	return need > shared ? 0 : shared - need + 1;
}

/* A group that pauses is one that the node looks at when its memory frees up. */
INLINE void list_paused(struct node *n, __u32 gi, struct group *g, __u64 below)
{
	if (below > n->resume)
		n->resume = below;
	if (g->listed)
		return;
	g->listed = 1;
	g->next = n->paused;
	n->paused = gi;
}

#define ADMITTED 1
#define PAUSES 2  /* the group reached its threshold */
#define HEADROOM 4 /* no headroom was left */

INLINE int admit_lossless(struct node *n, __u64 shared, __u32 gi, struct group *g, const struct group_conf *c, __u64 len)
{
	__u64 left = beyond(shared, n->used), below;
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
		below = resumes_below(shared, g, c);
		if (n->used < below) /* it might end at once, as the group holds nothing whose leaving would end it */
			return did;
		g->xoff = 1;
		g->xoffs++;
		list_paused(n, gi, g, below);
		did |= PAUSES;
	}
	return did;
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
