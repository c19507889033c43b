/* A frame comes to a port: it is put on an account, and waits in its queue or its flow; or it is dropped. */
#pragma once

#include "port_headers.h"
#include "port_accounts.h"
#include "port_slots.h"

SEC("struct_ops")
int port_enqueue(__u64 *ctx)
{
	struct sk_buff *skb = (void *)ctx[0];
	struct Qdisc *sch = (void *)ctx[1];
	struct bpf_sk_buff_ptr *to_free = (void *)ctx[2];
	__u32 id = sch->handle >> 16, len = packet_len(skb), in = 0, number, node_id, flow_number = 0;
	struct port_conf *c = map_lookup(&port_confs, &id), *from = NULL;
	struct port_state *p = map_lookup(&port_states, &id);
	struct node *node;
	struct group *g = NULL;
	struct queue *q = NULL;
	struct flow *f = NULL;
	struct slot *s = NULL;
	struct storm *storm;
	struct head h;
	__u8 priority;
	__u64 now, shared;
	int did, lossless = 0;

	if (!c || !p)
		goto drop;
	node_id = c->node;
	node = map_lookup(&nodes, &node_id);
	if (!node)
		goto drop;
	now = now_ns();
	read_head(skb, &h);
	if (h.pause) {
		number = take_slot(c, p, &s);
		if (!number || !s) {
			p->slot_drops++;
			goto drop;
		}
		s->len = len;
		s->express = 1;
		skb = kptr_xchg(&s->skb, skb);
		if (skb) {
			p->lost++;
			bpf_qdisc_skb_drop(skb, to_free);
		}
		append(c, &p->express, s, number);
		sch->q.qlen++;
		sch->qstats.backlog += len;
		return 0;
	}
	priority = c->priority[h.dscp & 63] & 7;
	if (skb->skb_iif) {
		__u32 at = skb->skb_iif, *port = map_lookup(&arrivals, &at);
		if (port && *port) {
			in = *port;
			from = map_lookup(&port_confs, &in);
			if (from)
				priority = from->priority[h.dscp & 63] & 7;
			__u32 gi = in * PRIORITIES + priority;
			g = map_lookup(&groups, &gi);
		}
	}
	q = &p->queue[priority];
	storm = map_lookup(&storms, &id);
	if (storm && storm->dropping >> priority & 1) {
		q->storm_drops++;
		goto drop_counted;
	}
	shared = memory_of(node_id);
	number = take_slot(c, p, &s);
	if (!number || !s) {
		p->slot_drops++;
		goto drop;
	}
	if (from && g && from->group[priority].lossless) {
		lossless = 1;
		spin_lock(&node->lock);
		did = admit_lossless(node, shared, in * PRIORITIES + priority, g, &from->group[priority], len);
	} else {
		spin_lock(&node->lock);
		did = admit_lossy(node, shared, p, q, &c->queue[priority], len);
	}
	if (g) {
		g->frames++;
		if (from && from->watched >> (h.dscp & 63) & 1)
			g->watched++;
	}
	if (did & ADMITTED) {
		node->total += len;
		if (node->total > node->high)
			node->high = node->total;
		if (g && !lossless)
			g->lossy += len;
		if (g && g->held + g->head + g->lossy > g->high)
			g->high = g->held + g->head + g->lossy;
	}
	spin_unlock(&node->lock);
	if (did & PAUSES && from && from->sends >> priority & 1)
		tell(now, in, EVENT_XOFF, priority);
	if (!(did & ADMITTED)) {
		s->next = p->spare;
		p->spare = number;
		if (!lossless)
			q->drops++;
		goto drop_counted;
	}
	s->len = len;
	s->express = 0;
	s->in = g ? in : 0;
	s->group = priority;
	s->lossless = lossless;
	if (c->paced && h.roce) {
		int stream = stream_of(h.opcode);
		struct flow_key k = {.qpn = h.qpn, .port = id};
		__u32 *n;
		__builtin_memcpy(k.daddr, h.daddr, 16);
		n = stream < 3 ? map_lookup(&pace_numbers, &k) : NULL;
		if (n) {
			flow_number = 2 * *n - !stream;
			struct pace_conf *pc = pace_of(flow_number);
			f = flow_at(flow_number);
			/* An acknowledgement waits only behind responses of its own queue pair. */
			if (f && !f->list.packets && (!pc || pc->closing || stream == 2))
				f = NULL;
		}
	}
	joins(skb, priority);
	skb = kptr_xchg(&s->skb, skb);
	if (skb) { /* can't be: the slot was free */
		p->lost++;
		bpf_qdisc_skb_drop(skb, to_free);
	}
	if (!p->packets) {
		p->held = 0;
		if (p->free_at < now)
			p->free_at = now;
	}
	if (f) {
		if (!f->list.packets) {
			struct flow *clock = clock_of(flow_number), *other = flow_at(((flow_number - 1) ^ 1) + 1);
			f->after = q->in;
			if (clock && clock->next < now && (!other || !other->list.packets))
				clock->next = now;
			join(q, f, flow_number);
		}
		append(c, &f->list, s, number);
		f->bytes += len;
	} else {
		append(c, &q->fifo, s, number);
		q->in++;
	}
	q->packets++;
	q->bytes += len;
	if (q->bytes > q->high)
		q->high = q->bytes;
	p->packets++;
	sch->q.qlen++;
	sch->qstats.backlog += len;
	return 0;
drop:
	if (q)
		q->drops++;
drop_counted:
	sch->qstats.drops++;
	bpf_qdisc_skb_drop(skb, to_free);
	return 1;
}
