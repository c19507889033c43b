/* Whose turn it is: queues that may send now, flows that may, and the one that is served. */
#pragma once

#include "port_slots.h"

#define NEVER (~0ULL)
#define ACTIVE 64 /* flows that one turn looks at */
#define ACTIVE_AGAIN 100000 /* ns after which it looks at the next ones when none of those may send */

/* eligible finds the first flow of a queue's ring that may send now and returns its number; 0: none of those that it looked at may, and the
 * port wakes no later than when one does, or when the next ones are to be looked at. */
__attribute__((noinline)) int eligible(__u32 id, __u32 priority, __u64 now, int tended)
{
	struct port_state *p = map_lookup(&port_states, &id);
	struct queue *q;
	__u32 number;
	struct flow *f, *clock;

	if (!p)
		return 0;
	q = &p->queue[priority & 7];
	f = flow_at(q->flows);
	if (!f)
		return 0;
	number = f->after_it;
	for (int i = 0; i < ACTIVE; i++) {
		f = flow_at(number);
		clock = clock_of(number);
		if (!f || !clock)
			return 0;
		if ((__s64)(q->out - f->after) >= 0) {
			if (!tended || clock->next <= now)
				return number;
			if (clock->next < p->wake)
				p->wake = clock->next;
		}
		if (number == q->flows)
			return 0;
		number = f->after_it;
	}
	q->flows = f->before_it; /* the rest next time, soon */
	if (now + ACTIVE_AGAIN < p->wake)
		p->wake = now + ACTIVE_AGAIN;
	return 0;
}

INLINE int is_paused(__u32 id, const struct port_conf *c, struct queue *q, int i, __u64 now)
{
	struct storm *s;

	if (q->until <= now || !(c->obey >> i & 1))
		return 0;
	s = map_lookup(&storms, &id);
	return !s || !(s->freed >> i & 1);
}

/* look says in the port's may whether a queue may send now, and in its wake when, if not. */
__attribute__((noinline)) int look(__u32 id, __u32 i, __u64 now, int tended)
{
	struct port_conf *c = map_lookup(&port_confs, &id);
	struct port_state *p = map_lookup(&port_states, &id);
	struct queue *q;
	__u64 at = 0;

	if (!c || !p)
		return 0;
	i &= 7;
	q = &p->queue[i];
	if (!q->packets)
		return 0;
	if (c->stuck >> i & 1) {
		at = now + c->poll; /* it may be declared otherwise by then */
	} else if (tended && is_paused(id, c, q, i, now)) {
		q->blocked = now;
		at = now + c->poll;
		if (q->until < at)
			at = q->until;
	} else if (c->queue[i].cost && q->next > now) {
		at = now + c->poll;
		if (q->next < at)
			at = q->next;
	}
	if (at) {
		if (at < p->wake)
			p->wake = at;
		return 0;
	}
	q->ready = q->flows && (!q->fifo.packets || q->turn) ? eligible(id, i, now, tended) : 0;
	if (q->fifo.packets || q->ready)
		p->may |= 1 << i;
	return 0;
}

/* choose takes strict queues first, the highest of them; the others share what is left by deficit weighted round robin: a turn adds the weight. A queue that is alone owes nothing. */
__attribute__((noinline)) int choose(__u32 id, __u32 may)
{
	struct port_conf *c = map_lookup(&port_confs, &id);
	struct port_state *p = map_lookup(&port_states, &id);
	__u32 at;

	if (!c || !p)
		return 0;
	for (int i = PRIORITIES - 1; i >= 0; i--)
		if (may >> i & 1 && !c->queue[i].weight)
			return i; /* strict: before all that have a weight */
	at = p->last & 7;
	for (int i = 0; i < 16 * PRIORITIES; i++) {
		if (may >> at & 1) {
			if (!(may & (may - 1)) || p->queue[at].deficit > 0)
				break;
			p->queue[at].deficit += c->queue[at].weight;
		}
		at = (at + 1) & 7;
	}
	p->last = at;
	return at;
}
