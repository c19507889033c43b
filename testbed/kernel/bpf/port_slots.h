/* Where frames wait: slots of a pool, in lists, and the rings of flows that wait. */
#pragma once

#include "port_tables.h"

INLINE __u32 take_slot(const struct port_conf *c, struct port_state *p, struct slot **s)
{
	__u32 at, number = p->spare;

	if (number) {
		at = c->first_slot + number - 1;
		*s = map_lookup(&slots, &at);
		if (!*s)
			return 0;
		p->spare = (*s)->next;
		return number;
	}
	if (p->fresh >= c->slots)
		return 0;
	number = ++p->fresh;
	at = c->first_slot + number - 1;
	*s = map_lookup(&slots, &at);
	return *s ? number : 0;
}

INLINE struct slot *slot_at(const struct port_conf *c, __u32 number)
{
	__u32 at = c->first_slot + number - 1;
	return number ? map_lookup(&slots, &at) : NULL;
}

INLINE void append(const struct port_conf *c, struct list *l, struct slot *s, __u32 number)
{
	struct slot *last = l->packets ? slot_at(c, l->last) : NULL;

	s->next = 0;
	if (last)
		last->next = number;
	else
		l->first = number;
	l->last = number;
	l->packets++;
}

INLINE struct flow *flow_at(__u32 number)
{
	__u32 at = number - 1;
	return number ? map_lookup(&flows, &at) : NULL;
}

/* The flow of the same queue pair whose clock counts, and what is declared of the queue pair. */
INLINE struct flow *clock_of(__u32 number) { return number ? flow_at((number - 1) | 1) : NULL; }

INLINE struct pace_conf *pace_of(__u32 number)
{
	__u32 at = (number - 1) >> 1;
	return number ? map_lookup(&pace_confs, &at) : NULL;
}

/* A flow that begins to wait joins its queue's ring, as the last. */
INLINE void join(struct queue *q, struct flow *f, __u32 number)
{
	struct flow *last = flow_at(q->flows), *first = last ? flow_at(last->after_it) : NULL;

	if (last && first) {
		f->after_it = last->after_it;
		f->before_it = q->flows;
		last->after_it = number;
		first->before_it = number;
	} else {
		f->after_it = f->before_it = number;
	}
	q->flows = number;
}

/* leave takes the flow that is last in the ring out of it. */
INLINE void leave(struct queue *q, struct flow *f)
{
	struct flow *before = flow_at(f->before_it), *after = flow_at(f->after_it);

	if (f->before_it == q->flows || !before || !after) {
		q->flows = 0;
		return;
	}
	before->after_it = f->after_it;
	after->before_it = f->before_it;
	q->flows = f->before_it;
}
