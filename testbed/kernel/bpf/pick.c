//go:build ignore

/* Packet events: finds out which events are about a packet, and does to it what they say, but for when it goes on: that is settle.c's.
 * faults/packet/flat.go has the layout of what it is told and the algorithm, step by step; a stage of the cables' chain. */
#include "rb.h"

enum { MAX_LIST = 1024, PAGE = 512, STREAMS = 4 };

struct rb_range { __u32 from, to; };
struct rb_rule {
	__u32 classes;
	__u8 positions, ways, ecn, flags;
	__u64 dscp;
	struct rb_range psn[4];
	__u32 passes;
	__u32 first, last, every;
	__u64 threshold;
	__u16 event, act;
	__u8 part, dscp_to;
	__u16 truncate, hold, copies;
	__u32 pad;
	__u64 delay_ns, at_most_ns;
};
struct rb_key { __u8 addr[16]; __u32 qpn; };
struct rb_round { __u32 next, n; };
struct rb_count { __u64 seen, hits; };
/* An entry with its list, and its rounds. */
struct rb_known {
	__u32 list, len;
	__u32 base[2];
	__s32 passes[STREAMS], rounds[STREAMS];
	__u32 flow;
	__u8 way, pad[3];
	struct rb_round round[STREAMS];
	__u16 rules[MAX_LIST];
};
/* What an opcode says of a packet. */
struct rb_op { __u32 class; __u8 position, stream, header, pad; };

enum { FLAG_PSN = 1, FLAG_PASSES = 2, FLAG_ROUNDS = 4 };
enum { DO_DROP = 1, DO_CORRUPT = 2, DO_MARK_CE = 4, DO_CLEAR_ECT = 8, DO_SET_DSCP = 16, DO_DUPLICATE = 32, DO_DELAY = 64, DO_HOLD = 128, DO_TRUNCATE = 256 };
enum { PAYLOAD, HEADER, ICRC };
enum { DRAW_BIT = 2, MAX_COPIES = 8, PSN_MASK = 0xffffff };
enum { CLASS_ACK = 1 << 6, CLASS_IP = 1 << 16 };

/* Set before the program is loaded. */
const volatile struct rb_op ops[256] = {};
const volatile __u32 syndromes[256] = {};
const volatile __u64 seed = 0;
const volatile __u32 window = 1;
const volatile __u32 holds = 0; /* some event holds or delays: flows and times are told to the end of the chain */
static const __u32 fresh_page[PAGE] = {};

struct {
	__uint(type, MAP_ARRAY);
	__type(key, __u32);
	__type(value, struct rb_rule);
	__uint(max_entries, 1);
} rules SEC(".maps");

struct {
	__uint(type, MAP_ARRAY);
	__type(key, __u32);
	__type(value, struct rb_count);
	__uint(max_entries, 1);
} events SEC(".maps");

struct {
	__uint(type, MAP_HASH);
	__type(key, struct rb_key);
	__type(value, struct rb_known);
	__uint(max_entries, 1);
	__uint(map_flags, NO_PREALLOC);
} known SEC(".maps");

/* For packets of connections that nobody knows. */
struct {
	__uint(type, MAP_ARRAY);
	__type(key, __u32);
	__type(value, struct rb_known);
	__uint(max_entries, 1);
} nobody SEC(".maps");

/* The passes, PAGE of them each. */
struct {
	__uint(type, MAP_HASH);
	__type(key, __u32);
	__uint(value_size, PAGE * 4);
	__uint(max_entries, 1);
	__uint(map_flags, NO_PREALLOC);
} pages SEC(".maps");

struct {
	__uint(type, MAP_ARRAY);
	__type(key, __u32);
	__type(value, struct counts);
	__uint(max_entries, 1);
} rb_stage SEC(".maps");

/* What is known of the packet at hand, and what becomes of it. */
struct work {
	__u64 delay, at_most;
	__u32 class, psn, pass, turn;
	__u32 l3, bth, header, payload, tail, icrc;
	__u16 act, truncate, hold, copies;
	__u8 position, stream, tclass, v6, roce, part, dscp, first_byte;
};

struct {
	__uint(type, MAP_PERCPU_ARRAY);
	__type(key, __u32);
	__type(value, struct work);
	__uint(max_entries, 1);
} desk SEC(".maps");

#define BE16(p) ((__u32)(p)[0] << 8 | (p)[1])
#define BE24(p) ((__u32)(p)[0] << 16 | (__u32)(p)[1] << 8 | (p)[2])

/* Understands a packet as roce.View does. 0: it isn't IP. */
INLINE int parse(struct __sk_buff *skb, struct work *w, struct rb_key *key)
{
	__u8 b[40] = {};
	__u32 len = skb->len, at = 14, type, l4, end, total, carried, pad, n;
	const volatile struct rb_op *op;

	if (load_bytes(skb, 12, b, 2))
		return 0;
	type = BE16(b);
	if (type == 0x8100) {
		if (load_bytes(skb, 16, b, 2))
			return 0;
		at = 18, type = BE16(b);
	}
	w->l3 = at;
	if (type == 0x0800) {
		if (load_bytes(skb, at, b, 20) || b[0] >> 4 != 4)
			return 0;
		n = (b[0] & 15) * 4, total = BE16(b + 2);
		if (n < 20 || total < n || at + total > len)
			return 0;
		w->v6 = 0, w->tclass = b[1], w->first_byte = b[0];
		l4 = at + n, end = at + total;
		if (BE16(b + 6) & 0x3fff || b[9] != 17)
			return 1;
		key->addr[10] = key->addr[11] = 0xff;
		__builtin_memcpy(key->addr + 12, b + 16, 4);
	} else if (type == 0x86dd) {
		if (load_bytes(skb, at, b, 40) || b[0] >> 4 != 6)
			return 0;
		total = 40 + BE16(b + 4);
		if (at + total > len)
			return 0;
		w->v6 = 1, w->tclass = b[0] << 4 | b[1] >> 4, w->first_byte = b[0];
		l4 = at + 40, end = at + total;
		if (b[6] != 17)
			return 1;
		__builtin_memcpy(key->addr, b + 24, 16);
	} else {
		return 0;
	}
	if (l4 + 8 > end || load_bytes(skb, l4, b, 8))
		return 1;
	if (BE16(b + 2) != 4791 || BE16(b + 4) != end - l4)
		return 1;
	w->bth = l4 + 8;
	if (w->bth + 12 + 4 > end || load_bytes(skb, w->bth, b, 12) || b[1] & 15)
		return 1;
	op = &ops[b[0]];
	w->header = op->header;
	pad = b[1] >> 4 & 3;
	w->payload = w->bth + w->header;
	w->icrc = end - 4;
	if (w->payload > w->icrc)
		return 1;
	carried = w->icrc - w->payload;
	if (carried % 4 || pad > carried)
		return 1;
	w->tail = w->icrc - pad;
	w->roce = 1;
	w->class = op->class, w->position = op->position, w->stream = op->stream;
	key->qpn = BE24(b + 5);
	w->psn = BE24(b + 9);
	if (w->class == CLASS_ACK) {
		if (load_bytes(skb, w->bth + 12, b, 1))
			return 1;
		w->class = syndromes[b[0]];
		if (w->class != CLASS_ACK)
			w->stream = 3;
	}
	return 1;
}

/* Counts a pass of a PSN. */
INLINE __u32 pass(__u32 at, __u32 psn)
{
	__u32 slot = at + (psn & (window - 1)), page = slot / PAGE, *p;

	p = map_lookup(&pages, &page);
	if (!p) {
		map_update(&pages, &page, fresh_page, BPF_NOEXIST);
		p = map_lookup(&pages, &page);
		if (!p) {
			struct counts *c;
			__u32 zero = 0;

			c = map_lookup(&rb_stage, &zero);
			if (c)
				__sync_fetch_and_add(&c->state, 1);
			return 1;
		}
	}
	p += slot % PAGE;
	if (*p == 0 || *p >> 8 != psn)
		*p = psn << 8;
	if ((*p & 255) < 255)
		++*p;
	return *p & 255;
}

/* Finds what a packet's PSN says: relative, its pass and its round. */
INLINE void sequence(struct work *w, struct rb_known *k)
{
	__u32 s = w->stream;

	if (s >= STREAMS || !k->flow)
		return;
	w->psn = (w->psn - (s ? k->base[1] : k->base[0])) & PSN_MASK;
	s &= 3;
	if (k->passes[s] >= 0)
		w->pass = pass(k->passes[s], w->psn);
	s = w->stream & 3;
	if (k->rounds[s] >= 0) {
		struct rb_round *r = &k->round[s];

		if (w->psn != r->next)
			r->n++;
		else if (w->position & 1)
			r->n = 1;
		r->next = (w->psn + 1) & PSN_MASK;
		w->turn = r->n;
	}
}

INLINE int sequenced(struct rb_rule *r, struct work *w)
{
	__u32 n;

	if (w->stream >= STREAMS)
		return 0;
	if (r->flags & FLAG_PSN) {
		__u32 p = w->psn;

		if (!(r->psn[0].from <= p && p <= r->psn[0].to || r->psn[1].from <= p && p <= r->psn[1].to ||
		      r->psn[2].from <= p && p <= r->psn[2].to || r->psn[3].from <= p && p <= r->psn[3].to))
			return 0;
	}
	if (!(r->flags & FLAG_PASSES))
		return 1;
	n = r->flags & FLAG_ROUNDS ? w->turn : w->pass;
	if (n > 32)
		n = 32;
	return n && r->passes >> (n - 1) & 1;
}

struct at { struct work *w; struct rb_known *k; };

/* One rule of the list. 1 ends it. */
static long judge(__u32 i, struct at *at)
{
	struct work *w = at->w;
	struct rb_known *k = at->k;
	struct rb_rule *r;
	struct rb_count *c;
	__u32 key;
	__u64 n;

	if (i >= MAX_LIST)
		return 1;
	key = k->rules[i];
	r = map_lookup(&rules, &key);
	if (!r)
		return 1;
	if (!(r->classes & w->class) || !(r->positions & w->position) || !(r->dscp >> (w->tclass >> 2) & 1) || !(r->ecn >> (w->tclass & 3) & 1))
		return 0;
	if (r->flags && !sequenced(r, w))
		return 0;
	key = r->event;
	c = map_lookup(&events, &key);
	if (!c)
		return 1;
	n = __sync_fetch_and_add(&c->seen, 1) + 1;
	if (r->first && (n < r->first || n > r->last && r->last != 0xffffffff))
		return 0;
	if (r->every && n % r->every)
		return 0;
	if (r->threshold != ~0ull && draw(seed, r->event, n - 1) >= r->threshold)
		return 0;
	__sync_fetch_and_add(&c->hits, 1);

	w->act |= r->act;
	if (r->act & DO_CORRUPT)
		w->part = r->part;
	if (r->act & DO_MARK_CE)
		w->act &= ~DO_CLEAR_ECT;
	if (r->act & DO_CLEAR_ECT)
		w->act &= ~DO_MARK_CE;
	if (r->act & DO_SET_DSCP)
		w->dscp = r->dscp_to;
	if (r->act & DO_TRUNCATE && (!w->truncate || r->truncate < w->truncate))
		w->truncate = r->truncate;
	w->copies += r->copies;
	if (w->copies > MAX_COPIES)
		w->copies = MAX_COPIES;
	w->delay += r->delay_ns;
	if (r->hold > w->hold)
		w->hold = r->hold, w->at_most = r->at_most_ns;
	return r->act & DO_DROP;
}

#include "pick_change.h"

SEC("tc")
int rb_pick(struct __sk_buff *skb)
{
	struct rb_key key = {};
	struct work *w;
	struct counts *c;
	struct at at;
	__u32 zero = 0, fate;
	__u64 hit, time;

	w = map_lookup(&desk, &zero);
	c = map_lookup(&rb_stage, &zero);
	if (!w || !c)
		return go_on(skb);
	__sync_fetch_and_add(&c->seen, 1);
	*w = (struct work){.class = CLASS_IP, .position = 1 | 4, .stream = STREAMS};
	if (!parse(skb, w, &key))
		return go_on(skb);
	at.w = w;
	at.k = w->roce ? map_lookup(&known, &key) : 0;
	if (!at.k)
		at.k = map_lookup(&nobody, &zero);
	if (!at.k)
		return go_on(skb);
	if (holds)
		skb->cb[CB_FLOW] = at.k->flow;
	sequence(w, at.k);
	loop(at.k->len, judge, &at, 0);
	if (!w->act)
		return go_on(skb);
	hit = __sync_fetch_and_add(&c->hits, 1) + 1;
	if (w->act & DO_DROP)
		return SHOT;
	change_class(skb, w);
	if (w->act & DO_CORRUPT)
		damage(skb, w, hit);
	if (w->act & DO_TRUNCATE && w->truncate < skb->len)
		change_tail(skb, w->truncate, 0);
	fate = skb->cb[CB_FATE];
	if (w->copies)
		fate += FATE_COPY * w->copies;
	time = 0;
	if (w->hold) {
		fate = (fate & ~(FATE_HOLD | FATE_DELAY)) | w->hold;
		time = w->at_most;
	} else if (w->delay) {
		fate |= FATE_DELAY;
		time = w->delay;
	}
	skb->cb[CB_FATE] = fate;
	if (holds) {
		skb->cb[CB_TIME] = time;
		skb->cb[CB_TIME_HIGH] = time >> 32;
	}
	return go_on(skb);
}

char rb_license[] SEC("license") = "Dual MIT/GPL";
