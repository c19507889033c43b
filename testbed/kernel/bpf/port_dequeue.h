/* The line is free: a frame leaves, and the line, its queue and its flow are charged for it. */
#pragma once

#include "port_turn.h"
#include "port_release.h"

SEC("struct_ops")
struct sk_buff *port_dequeue(__u64 *ctx)
{
	struct Qdisc *sch = (void *)ctx[0];
	__u32 id = sch->handle >> 16, number = 0, wire;
	struct port_conf *c = map_lookup(&port_confs, &id);
	struct port_state *p = map_lookup(&port_states, &id);
	struct sk_buff *skb = NULL;
	struct queue *q = NULL;
	struct flow *f = NULL;
	struct slot *s;
	__u64 now, t;
	__u32 len, may = 0;
	int looked_after, pick, dropping;
	struct storm *storm;

	if (!c || !p)
		return NULL;
	if (p->express.packets) { /* right behind what is on the line; the few bytes are not charged */
		number = p->express.first;
		s = slot_at(c, number);
		if (!s)
			return NULL;
		p->express.first = s->next;
		p->express.packets--;
		len = s->len;
		skb = kptr_xchg(&s->skb, NULL);
		s->next = p->spare;
		p->spare = number;
		sch->q.qlen--;
		sch->qstats.backlog -= len;
		if (skb)
			bpf_qdisc_bstats_update(sch, skb);
		return skb;
	}
	if (!p->packets)
		return NULL;
	now = now_ns();
	if (p->free_at > now) {
		bpf_qdisc_watchdog_schedule(sch, p->free_at, 0);
		return NULL;
	}
	looked_after = tended(now);
	p->may = 0;
	p->wake = NEVER;
	for (int i = 0; i < PRIORITIES; i++)
		look(id, i, now, looked_after);
	may = p->may;
	if (!may) {
		p->held = 1;
		if (p->wake != NEVER)
			bpf_qdisc_watchdog_schedule(sch, p->wake, 0);
		return NULL;
	}
	pick = choose(id, may);
	pick &= 7;
	q = &p->queue[pick];
	f = flow_at(q->ready);
	if (f)
		q->flows = q->ready; /* the last in the ring now */
	q->turn = !f;
	struct list *l = f ? &f->list : &q->fifo;
	number = l->first;
	s = slot_at(c, number);
	if (!s)
		return NULL;
	l->first = s->next;
	l->packets--;
	len = s->len;
	skb = kptr_xchg(&s->skb, NULL);
	storm = map_lookup(&storms, &id);
	dropping = storm && storm->dropping >> pick & 1;
	wire = dropping ? 0 : len + c->overhead;
	if (wire < c->minimum && !dropping)
		wire = c->minimum;
	if (f) {
		struct flow *clock = clock_of(q->ready);
		struct pace_conf *pc = pace_of(q->ready);
		if (!clock)
			clock = f;
		t = clock->next;
		if (t < q->blocked) /* what a pause took from it isn't made up for */
			t = q->blocked;
		if (pc && t + c->lag + (wire * pc->cost >> 12) < now) /* nor are more than sixteen of its frames that the port was served late */
			t = now - c->lag - (wire * pc->cost >> 12);
		clock->next = t + (pc ? wire * pc->cost >> 16 : 0);
		f->bytes -= len;
		f->tx_frames++;
		f->tx_bytes += len;
		if (!f->list.packets)
			leave(q, f);
	} else {
		q->out++;
	}
	if (may & (may - 1))
		q->deficit -= wire;
	q->packets--;
	if (!q->packets)
		q->deficit = 0;
	q->bytes -= len;
	if (c->queue[pick].cost) {
		t = q->next;
		if (t + c->lag < now)
			t = now;
		q->next = t + (wire * c->queue[pick].cost >> 16);
	}
	if (dropping) {
		q->storm_drops++;
	} else {
		q->tx_frames++;
		q->tx_bytes += len;
		if (q->until > now && !(c->obey >> pick & 1))
			q->against++;
	}
	p->packets--;
	t = p->free_at;
	if (p->held) { /* the line was idle for want of what may go */
		if (t < now)
			t = now;
		p->held = 0;
	} else if (t + c->lag < now) {
		p->late += now - c->lag - t;
		t = now - c->lag;
	}
	p->free_at = t + (wire * c->cost >> 16);

	release(id, number);
	s->next = p->spare;
	p->spare = number;
	sch->q.qlen--;
	sch->qstats.backlog -= len;
	if (!skb) {
		p->lost++;
		return NULL;
	}
	if (dropping) { /* one a look, and the next look at once */
		bpf_kfree_skb(skb);
		bpf_qdisc_watchdog_schedule(sch, now, 0);
		return NULL;
	}
	bpf_qdisc_bstats_update(sch, skb);
	return skb;
}
