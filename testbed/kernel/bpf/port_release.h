/* What waited leaves its accounts, frame by frame or all at once. */
#pragma once

#include "port_accounts.h"
#include "port_slots.h"

/* resume looks at a node's paused groups, which have been taken off it as a list: the pauses end of those that the memory has room for again, and the others
 * are the node's again. Nobody looks at them before one may go on, so that a frame costs the same whatever is paused. */
__attribute__((noinline)) int resume(__u32 node_id, __u32 first)
{
	struct node *node = map_lookup(&nodes, &node_id);
	__u64 shared = memory_of(node_id), below;
	struct bpf_iter_num it;
	__u32 gi = first;

	if (!node)
		return 0;
	bpf_iter_num_new(&it, 0, MAX_PORTS * PRIORITIES);
	while (bpf_iter_num_next(&it)) {
		__u32 port = gi / PRIORITIES, i = gi % PRIORITIES, next;
		struct port_conf *c = map_lookup(&port_confs, &port);
		struct group *g = gi ? map_lookup(&groups, &gi) : NULL;
		int ends = 0;

		if (!c || !g)
			break;
		spin_lock(&node->lock);
		next = g->next;
		g->listed = 0;
		if (g->xoff) {
			below = resumes_below(shared, g, &c->group[i]);
			if (node->used < below) {
				g->xoff = 0;
				g->told = 0;
				ends = 1;
			} else {
				list_paused(node, gi, g, below);
			}
		}
		spin_unlock(&node->lock);
		if (ends) /* also where the port has stopped sending pauses since */
			tell(now_ns(), port, EVENT_XON, i);
		gi = next;
	}
	bpf_iter_num_destroy(&it);
	return 0;
}

/* reconsider looks at a node's paused groups after something else was declared of it. */
SEC("syscall")
int reconsider(__u32 *node_id)
{
	__u32 id = *node_id, paused;
	struct node *node = map_lookup(&nodes, &id);

	if (!node)
		return 0;
	spin_lock(&node->lock);
	paused = node->paused;
	node->paused = 0;
	node->resume = 0;
	spin_unlock(&node->lock);
	return resume(id, paused);
}

/* release takes a frame off its accounts; the pause of its group may end, and those of others whose thresholds rise by that. */
__attribute__((noinline)) int release(__u32 id, __u32 number)
{
	struct port_conf *c = map_lookup(&port_confs, &id), *from;
	struct port_state *p = map_lookup(&port_states, &id);
	__u32 node_id, in, gi, i, len, paused = 0;
	struct node *node;
	struct group *g;
	struct slot *s;

	if (!c || !p)
		return 0;
	s = slot_at(c, number);
	node_id = c->node;
	node = map_lookup(&nodes, &node_id);
	if (!s || !node)
		return 0;
	in = s->in;
	i = s->group & 7;
	gi = in * PRIORITIES + i;
	len = s->len;
	from = in ? map_lookup(&port_confs, &in) : NULL;
	g = in ? map_lookup(&groups, &gi) : NULL;
	struct queue *q = &p->queue[i];
	__u64 shared = memory_of(node_id);
	spin_lock(&node->lock);
	node->total -= len;
	if (!s->lossless) {
		node->used -= beyond(q->lossy, c->queue[i].reserved) - beyond(q->lossy - len, c->queue[i].reserved);
		q->lossy -= len;
		if (g)
			g->lossy -= len;
	} else if (g && from) {
		const struct group_conf *gc = &from->group[i];
		__u64 h = g->head < len ? g->head : len, rest = len - h;
		g->head -= h;
		node->used -= beyond(g->held, gc->reserved) - beyond(g->held - rest, gc->reserved);
		g->held -= rest;
		if (g->xoff)
			list_paused(node, gi, g, resumes_below(shared, g, gc));
	}
	if (node->used < node->resume) {
		paused = node->paused;
		node->paused = 0;
		node->resume = 0;
	}
	spin_unlock(&node->lock);
	return paused ? resume(node_id, paused) : 0;
}

/* forget empties the ring of a queue's flows. */
__attribute__((noinline)) int forget(__u32 id, __u32 i)
{
	struct port_state *p = map_lookup(&port_states, &id);
	__u32 gi = id * PRIORITIES + (i & 7);
	struct bpf_iter_num it;
	struct queue *q;
	struct group *g;

	if (!p)
		return 0;
	q = &p->queue[i & 7];
	bpf_iter_num_new(&it, 0, 1 << 16);
	while (bpf_iter_num_next(&it)) {
		struct flow *f = flow_at(q->flows);
		if (!f)
			break;
		f->list.first = f->list.last = f->list.packets = 0;
		f->bytes = 0;
		leave(q, f);
	}
	bpf_iter_num_destroy(&it);
	q->fifo.first = q->fifo.last = q->fifo.packets = 0;
	q->out = q->in;
	q->packets = q->flows = 0;
	q->bytes = q->deficit = 0;
	q->until = 0;
	g = map_lookup(&groups, &gi);
	if (g)
		g->told = 0; /* the peer has forgotten it */
	return 0;
}
