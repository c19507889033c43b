//go:build ignore

/* A port as a queueing discipline: it shapes to the line's rate, keeps a queue a priority, obeys pauses, paces flows, and keeps
 * the accounts that pauses are asked for by. One program serves every port of every node. */
#include "port.h"

char __license[] SEC("license") = "GPL";

#define NEVER (~0ULL)
#define MAX_PORTS 4096
#define ACTIVE 64 /* flows that one turn looks at */
#define ACTIVE_AGAIN 100000 /* ns after which it looks at the next ones when none of those may send */

struct {
	__uint(type, MAP_ARRAY);
	__uint(max_entries, MAX_PORTS);
	__type(key, __u32);
	__type(value, struct port_conf);
} port_confs SEC(".maps");

struct {
	__uint(type, MAP_ARRAY);
	__uint(max_entries, MAX_PORTS);
	__type(key, __u32);
	__type(value, struct port_state);
} port_states SEC(".maps");

struct {
	__uint(type, MAP_ARRAY);
	__uint(max_entries, MAX_PORTS * PRIORITIES);
	__type(key, __u32);
	__type(value, struct group);
} groups SEC(".maps");

struct {
	__uint(type, MAP_ARRAY);
	__uint(max_entries, MAX_PORTS);
	__type(key, __u32);
	__type(value, struct node);
} nodes SEC(".maps");

/* How many bytes of packet memory a node's ports share. */
struct {
	__uint(type, MAP_ARRAY);
	__uint(max_entries, MAX_PORTS);
	__type(key, __u32);
	__type(value, __u64);
} memories SEC(".maps");

INLINE __u64 memory_of(__u32 node)
{
	__u64 *shared = map_lookup(&memories, &node);
	return shared ? *shared : 0;
}

struct {
	__uint(type, MAP_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct slot);
} slots SEC(".maps");

/* The port that an interface is, by its index, which no two of a testbed's interfaces share. */
struct {
	__uint(type, MAP_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} arrivals SEC(".maps");

/* Flows by key, their number; and by number. */
struct {
	__uint(type, MAP_HASH);
	__uint(max_entries, 1);
	__type(key, struct flow_key);
	__type(value, __u32);
} flow_numbers SEC(".maps");

struct {
	__uint(type, MAP_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct flow);
} flows SEC(".maps");

struct {
	__uint(type, MAP_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct flow_conf);
} flow_confs SEC(".maps");

struct {
	__uint(type, MAP_RINGBUF);
	__uint(max_entries, 1 << 20);
} events SEC(".maps");

struct {
	__uint(type, MAP_ARRAY);
	__uint(max_entries, MAX_PORTS);
	__type(key, __u32);
	__type(value, struct storm);
} storms SEC(".maps");

/* Until when somebody looks after pauses and rates: past it every port runs as if there were none. */
struct {
	__uint(type, MAP_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} lease SEC(".maps");

__u64 events_lost;

INLINE int tended(__u64 now)
{
	__u32 zero = 0;
	__u64 *until = map_lookup(&lease, &zero);
	return until && *until > now;
}

INLINE void tell(__u64 now, __u32 port, __u8 kind, __u8 priority)
{
	struct event *e = ringbuf_reserve(&events, sizeof *e, 0);
	if (!e) {
		__sync_fetch_and_add(&events_lost, 1);
		return;
	}
	__builtin_memset(e, 0, sizeof *e);
	e->at = now;
	e->port = port;
	e->kind = kind;
	e->priority = priority;
	ringbuf_submit(e, 0);
}

/* Headers. */

#define ETH_IPV4 0x0008
#define ETH_IPV6 0xdd86
#define ETH_PAUSE 0x0888
#define ROCE_PORT 0xb712 /* 4791 in network order */

struct head {
	__u8 dscp;
	__u8 pause;
	__u8 roce;
	__u8 opcode;
	__u32 qpn;
	__u8 daddr[16];
};

INLINE void read_head(struct sk_buff *skb, struct head *h)
{
	struct bpf_dynptr d;
	__u8 buf[74] = {}, *b;
	__u32 len = packet_len(skb);

	h->dscp = 0;
	h->roce = 0;
	h->pause = 0;
	if (bpf_dynptr_from_skb(skb, 0, &d))
		return;
	b = len >= 74 ? bpf_dynptr_slice(&d, 0, buf, 74) : NULL;
	if (!b) {
		b = bpf_dynptr_slice(&d, 0, buf, 34);
		if (!b)
			return;
		/* too short for RoCE over IPv6: IPv4's ACKs and CNPs have 62 bytes and more */
		if (*(__u16 *)(b + 12) == ETH_IPV6) {
			h->dscp = (*(__u8 *)(b + 14) & 15) << 2 | b[15] >> 6;
			return;
		}
		h->pause = *(__u16 *)(b + 12) == ETH_PAUSE;
		if (*(__u16 *)(b + 12) != ETH_IPV4)
			return;
		h->dscp = b[15] >> 2;
		b = len >= 58 ? bpf_dynptr_slice(&d, 0, buf, 58) : NULL;
		if (!b)
			return;
		if (b[14] != 0x45 || b[23] != 17 || *(__u16 *)(b + 36) != ROCE_PORT)
			return;
		h->roce = 1;
		h->opcode = b[42];
		h->qpn = (__u32)b[47] << 16 | (__u32)b[48] << 8 | b[49];
		__builtin_memset(h->daddr, 0, 10);
		h->daddr[10] = h->daddr[11] = 0xff;
		__builtin_memcpy(h->daddr + 12, b + 30, 4);
		return;
	}
	if (*(__u16 *)(b + 12) == ETH_IPV4) {
		h->dscp = b[15] >> 2;
		if (b[14] != 0x45 || b[23] != 17 || *(__u16 *)(b + 36) != ROCE_PORT)
			return;
		h->roce = 1;
		h->opcode = b[42];
		h->qpn = (__u32)b[47] << 16 | (__u32)b[48] << 8 | b[49];
		__builtin_memset(h->daddr, 0, 10);
		h->daddr[10] = h->daddr[11] = 0xff;
		__builtin_memcpy(h->daddr + 12, b + 30, 4);
	} else if (*(__u16 *)(b + 12) == ETH_IPV6) {
		h->dscp = (b[14] & 15) << 2 | b[15] >> 6;
		if (b[20] != 17 || *(__u16 *)(b + 56) != ROCE_PORT)
			return;
		h->roce = 1;
		h->opcode = b[62];
		h->qpn = (__u32)b[67] << 16 | (__u32)b[68] << 8 | b[69];
		__builtin_memcpy(h->daddr, b + 38, 16);
	}
}

/* What RC opcodes are: 0 requests, 1 READ responses and answers to atomics, 2 acknowledgements, 3 the rest. */
INLINE int stream_of(__u8 opcode)
{
	if (opcode == 0x81)
		return 3;
	opcode &= 0x1f;
	if (opcode == 17)
		return 2;
	if (opcode >= 13 && opcode <= 18)
		return 1;
	return 0;
}

/* Accounts; the node's lock is held. */

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

/* Slots. */

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
		did = admit_lossless(node, shared, g, &from->group[priority], len);
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
		struct flow_key k = {.qpn = h.qpn, .port = id, .responses = stream == 1 || stream == 2};
		__u32 *n;
		__builtin_memcpy(k.daddr, h.daddr, 16);
		n = stream < 3 ? map_lookup(&flow_numbers, &k) : NULL;
		if (n) {
			__u32 at = *n - 1;
			struct flow_conf *fc = map_lookup(&flow_confs, &at);
			flow_number = *n;
			f = map_lookup(&flows, &at);
			/* An acknowledgement waits only behind responses of its own queue pair. */
			if (f && !f->list.packets && (!fc || fc->closing || stream == 2))
				f = NULL;
		}
	}
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
			f->after = q->in;
			if (f->next < now)
				f->next = now;
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

/* eligible finds the first flow of a queue's ring that may send now and returns its number; 0: none of those that it looked at may, and the
 * port wakes no later than when one does, or when the next ones are to be looked at. */
__attribute__((noinline)) int eligible(__u32 id, __u32 priority, __u64 now, int tended)
{
	struct port_state *p = map_lookup(&port_states, &id);
	struct queue *q;
	__u32 number;
	struct flow *f;

	if (!p)
		return 0;
	q = &p->queue[priority & 7];
	f = flow_at(q->flows);
	if (!f)
		return 0;
	number = f->after_it;
	for (int i = 0; i < ACTIVE; i++) {
		f = flow_at(number);
		if (!f)
			return 0;
		if ((__s64)(q->out - f->after) >= 0) {
			if (!tended || f->next <= now)
				return number;
			if (f->next < p->wake)
				p->wake = f->next;
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

/* release takes a frame off its accounts; the pause of its group may end. */
__attribute__((noinline)) int release(__u32 id, __u32 number)
{
	struct port_conf *c = map_lookup(&port_confs, &id), *from;
	struct port_state *p = map_lookup(&port_states, &id);
	__u32 node_id, in, gi, i, len;
	struct node *node;
	struct group *g;
	struct slot *s;
	int resume = 0;

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
		if (g->xoff && resumes(node, shared, g, gc)) {
			g->xoff = 0;
			g->told = 0;
			resume = 1;
		}
	}
	spin_unlock(&node->lock);
	if (resume) /* also where the port has stopped sending pauses since */
		tell(now_ns(), in, EVENT_XON, i);
	return 0;
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
		__u32 at = q->flows - 1; /* it is the last of the ring now */
		struct flow_conf *fc = map_lookup(&flow_confs, &at);
		t = f->next;
		if (t < q->blocked) /* what a pause took from it isn't made up for */
			t = q->blocked;
		if (fc && t + c->lag + (wire * fc->cost >> 12) < now) /* nor are more than sixteen of its frames that the port was served late */
			t = now - c->lag - (wire * fc->cost >> 12);
		f->next = t + (fc ? wire * fc->cost >> 16 : 0);
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

SEC("struct_ops")
int port_init(__u64 *ctx)
{
	struct Qdisc *sch = (void *)ctx[0];
	__u32 id = sch->handle >> 16;
	struct port_conf *c = map_lookup(&port_confs, &id);

	return c && c->slots ? 0 : -22; /* EINVAL: nothing is declared of such a port */
}

/* The port has lost its carrier, or goes: all that waits is freed and taken off its accounts, and no pause is in force any more. */
SEC("struct_ops")
void port_reset(__u64 *ctx)
{
	struct Qdisc *sch = (void *)ctx[0];
	__u32 id = sch->handle >> 16;
	struct port_conf *c = map_lookup(&port_confs, &id);
	struct port_state *p = map_lookup(&port_states, &id);
	struct bpf_iter_num it;
	int *i;

	sch->q.qlen = 0;
	sch->qstats.backlog = 0;
	if (!c || !p)
		return;
	bpf_iter_num_new(&it, 0, 1 << 20);
	while ((i = bpf_iter_num_next(&it))) {
		struct sk_buff *skb;
		struct slot *s;
		if (*i >= p->fresh)
			break;
		s = slot_at(c, *i + 1);
		if (!s)
			break;
		skb = kptr_xchg(&s->skb, NULL);
		if (skb) {
			if (!s->express)
				release(id, *i + 1);
			bpf_kfree_skb(skb);
		}
	}
	bpf_iter_num_destroy(&it);
	bpf_iter_num_new(&it, 0, PRIORITIES);
	while ((i = bpf_iter_num_next(&it)))
		forget(id, *i);
	bpf_iter_num_destroy(&it);
	p->packets = 0;
	p->express.first = p->express.last = p->express.packets = 0;
	p->fresh = 0;
	p->spare = 0;
}

SEC("struct_ops")
void port_destroy(__u64 *ctx)
{
}

SEC(".struct_ops.link")
struct Qdisc_ops rocebed_port = {
	.enqueue = (void *)port_enqueue,
	.dequeue = (void *)port_dequeue,
	.init = (void *)port_init,
	.reset = (void *)port_reset,
	.destroy = (void *)port_destroy,
	.id = "rocebed",
};

/* Departure: what a port sends passes the near end of its cable, where programs may write. */

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

/* mark is DCQCN's congestion point: as a frame departs, by lot, on the bytes that it leaves behind in its queue. */
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

	if (!c || !p)
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
	i = c->priority[tos >> 2 & 63] & 7;
	qc = &c->queue[i];
	if (!qc->kmax && !qc->wrong)
		return ACT_UNSPEC;
	qi = *port * PRIORITIES + i;
	m = map_lookup(&marks, &qi);
	if (!m)
		return ACT_UNSPEC;
	m->seen++;
	bytes = p->queue[i].bytes;
	lot = random32();
	is = marks_at(bytes, lot, qc->kmin, qc->kmax, qc->slope);
	if (qc->wrong) {
		was = marks_at(bytes, lot, qc->right_kmin, qc->right_kmax, qc->right_slope);
		if (is != was)
			m->wrong++;
	}
	if (is) {
		ecn_set_ce(skb);
		m->marked++;
	}
	return ACT_UNSPEC;
}

/* Arrival: what comes in at a port of a switch or a host. */

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
		q->rx_pause++;
		if (!was && q->until)
			q->paused += q->until - q->since; /* it ran out */
		if (quanta) {
			q->until = now + (quanta * c->quantum >> 16);
			if (!was) {
				q->since = now;
				q->rx_xoff++;
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
		n->cnps++;
	} else {
		n->marked++;
		last = map_lookup(&notices, &k);
		if (last && now - *last < interval) {
			n->held_back++;
			return 0;
		}
		if (last)
			*last = now;
		else
			map_update(&notices, &k, &now, BPF_ANY);
	}
	e = ringbuf_reserve(&events, sizeof *e, 0);
	if (!e) {
		__sync_fetch_and_add(&events_lost, 1);
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
	g->told = 1;
	tell(now_ns(), port, EVENT_TOLD, i);
	skb->mark = PAUSE_MARK | i;
	if (!clone_redirect(skb, skb->ifindex, 0))
		g->tx_pause++;
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
