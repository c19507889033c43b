//go:build ignore

/* The last stage on a direction whose packets are copied, delayed or held one by one: it sends a packet on with its copies, or puts it on the
 * shelf, and sends on those from the shelf that have been overtaken often enough. faults/packet/shelf.go says when that is.
 *
 * A packet on the shelf is its bytes: it is made anew out of the packet that has overtaken it last, once that has gone on. What waits for a
 * time, and what is left when the fault ends, is taken from the shelf and sent by cable/shelf.go, which shares this memory. */
#include "rb.h"

enum { SLOTS = 512, ROOM = 9232 };
enum { FREE, FILLING, HELD, DUE, TAKEN }; /* the shelf's owner makes HELD TAKEN, and that FREE */

struct slot {
	__u32 state;
	__u32 flow;
	__u32 left; /* packets that are to overtake it; 0: it waits for its time alone */
	__u32 len;
	__u64 turn; /* the order in which packets were put there */
	__u64 when; /* ns, CLOCK_MONOTONIC; 0: without end */
	__u32 copies, pad;
	__u8 bytes[ROOM];
};

struct {
	__uint(type, MAP_ARRAY);
	__type(key, __u32);
	__type(value, struct slot);
	__uint(max_entries, SLOTS);
	__uint(map_flags, MMAPABLE);
} shelf SEC(".maps");

struct books {
	__u64 turns;
	__u32 held; /* how many slots aren't free */
	__u32 high; /* no slot from here on has ever been used */
	__u64 full; /* packets that went on because there was no room for them */
};

struct {
	__uint(type, MAP_ARRAY);
	__type(key, __u32);
	__type(value, struct books);
	__uint(max_entries, 1);
	__uint(map_flags, MMAPABLE);
} books SEC(".maps");

/* Slots that wait for a time. */
struct {
	__uint(type, MAP_RINGBUF);
	__uint(max_entries, 16384);
} waiting SEC(".maps");

struct desk {
	__u32 flow, out, passed, due, best, pad;
	__u64 turn;
};

struct {
	__uint(type, MAP_PERCPU_ARRAY);
	__type(key, __u32);
	__type(value, struct desk);
	__uint(max_entries, 1);
} desks SEC(".maps");

struct job { struct __sk_buff *skb; struct desk *d; struct books *b; };

INLINE struct slot *slot_of(__u32 i)
{
	return map_lookup(&shelf, &i);
}

/* Takes the first free slot. */
static long find_free(__u32 i, struct job *j)
{
	struct slot *s = slot_of(i);

	if (!s)
		return 1;
	if (s->state != FREE || __sync_val_compare_and_swap(&s->state, FREE, FILLING) != FREE)
		return 0;
	j->d->best = i;
	return 1;
}

/* Keeps the packet; 0: it can't be kept. */
INLINE int put(struct __sk_buff *skb, struct job *j, __u32 fate, __u64 time)
{
	__u32 len = skb->len, high, i;
	struct slot *s;

	j->d->best = SLOTS;
	loop(SLOTS, find_free, j, 0);
	i = j->d->best;
	s = slot_of(i);
	if (!s)
		return 0;
	barrier_var(len);
	if (len == 0 || len > ROOM || load_bytes(skb, 0, s->bytes, len)) {
		__sync_lock_test_and_set(&s->state, FREE);
		return 0;
	}
	s->len = len;
	s->flow = skb->cb[CB_FLOW];
	s->left = fate & FATE_DELAY ? 0 : fate & FATE_HOLD;
	s->copies = (fate & FATE_COPIES) / FATE_COPY;
	s->when = time ? now_ns() + time : 0;
	s->turn = __sync_fetch_and_add(&j->b->turns, 1);
	__sync_fetch_and_add(&j->b->held, 1);
	high = j->b->high;
	if (high <= i) /* another processor that does the same at this moment has a slot of its own: the higher must win */
		for (int n = 0; n < 8 && high <= i; n++)
			high = __sync_val_compare_and_swap(&j->b->high, high, i + 1);
	__sync_lock_test_and_set(&s->state, HELD);
	if (time)
		ringbuf_output(&waiting, &i, sizeof(i), 0);
	return 1;
}

/* A packet of the flow has gone on: the slot hears of it. */
static long overtaken(__u32 i, struct job *j)
{
	struct slot *s = slot_of(i);

	if (!s)
		return 1;
	if (s->state != HELD || s->flow != j->d->flow || !s->left)
		return 0;
	if (__sync_fetch_and_add(&s->left, -1) == 1 && __sync_val_compare_and_swap(&s->state, HELD, DUE) == HELD)
		j->d->due++;
	return 0;
}

/* Finds the packet that is due and has been there for longest. */
static long oldest(__u32 i, struct job *j)
{
	struct slot *s = slot_of(i);

	if (!s)
		return 1;
	if (s->state == DUE && s->flow == j->d->flow && (j->d->best >= SLOTS || s->turn < j->d->turn)) {
		j->d->best = i;
		j->d->turn = s->turn;
	}
	return 0;
}

/* Makes the packet at hand the one of a slot, and sends it. */
INLINE void release(struct job *j)
{
	struct slot *s = slot_of(j->d->best);
	__u32 len, n;

	if (!s)
		return;
	len = s->len;
	barrier_var(len);
	if (len > 0 && len <= ROOM && !change_tail(j->skb, len, 0) && !store_bytes(j->skb, 0, s->bytes, len, 0)) {
		n = s->copies;
		for (__u32 k = 0; k < 16; k++) {
			clone_redirect(j->skb, j->d->out, 0);
			if (k >= n)
				break;
		}
	} else {
		__sync_fetch_and_add(&j->b->full, 1);
	}
	__sync_lock_test_and_set(&s->state, FREE);
	__sync_fetch_and_add(&j->b->held, -1);
}

/* One step of what follows when a packet has gone on: those that are due go on one by one, and each of them counts for the others in turn. */
static long step(__u32 i, struct job *j)
{
	struct desk *d = j->d;

	if (d->due) {
		d->best = SLOTS;
		loop(j->b->high, oldest, j, 0);
		release(j);
		d->due--;
		d->passed++;
		return 0;
	}
	if (!d->passed)
		return 1;
	d->passed--;
	loop(j->b->high, overtaken, j, 0);
	return 0;
}

SEC("tc")
int rb_settle(struct __sk_buff *skb)
{
	__u32 zero = 0, fate = skb->cb[CB_FATE], copies = (fate & FATE_COPIES) / FATE_COPY;
	__u64 time = skb->cb[CB_TIME] | (__u64)skb->cb[CB_TIME_HIGH] << 32;
	struct hop *h = hop_of(skb);
	struct job j = {skb, map_lookup(&desks, &zero), map_lookup(&books, &zero)};

	if (!h || !h->out || !j.d || !j.b)
		return STOLEN;
	if (fate & (FATE_HOLD | FATE_DELAY)) {
		if (put(skb, &j, fate, time))
			return STOLEN;
		__sync_fetch_and_add(&j.b->full, 1);
	}
	if (fate & FATE_EARLY && !copies && !j.b->held)
		return redirect_peer(h->out, 0);
	if (!copies && !j.b->held)
		return redirect(h->out, 0);
	j.d->flow = skb->cb[CB_FLOW];
	j.d->out = h->out;
	j.d->due = 0;
	j.d->passed = 1;
	for (__u32 k = 0; k < 16; k++) {
		clone_redirect(skb, h->out, 0);
		if (k >= copies)
			break;
	}
	if (j.b->held)
		loop(4 * SLOTS, step, &j, 0);
	return STOLEN;
}

char rb_license[] SEC("license") = "Dual MIT/GPL";
