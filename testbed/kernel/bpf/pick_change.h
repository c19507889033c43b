/* What is done to a packet that an event is about: part of pick.c. */
#pragma once

/* Changes DSCP and ECN field, and IPv4's checksum with them. */
INLINE void change_class(struct __sk_buff *skb, struct work *w)
{
	__u8 t = w->tclass, b[2];

	if (w->act & DO_SET_DSCP)
		t = (t & 3) | w->dscp << 2;
	if (w->act & DO_MARK_CE)
		t |= 3;
	if (w->act & DO_CLEAR_ECT)
		t &= ~3;
	if (t == w->tclass)
		return;
	if (w->v6) {
		if (load_bytes(skb, w->l3, b, 2))
			return;
		b[0] = (b[0] & 0xf0) | t >> 4;
		b[1] = (b[1] & 0x0f) | t << 4;
		store_bytes(skb, w->l3, b, 2, 0);
		return;
	}
	b[0] = w->first_byte, b[1] = t;
	l3_csum_replace(skb, w->l3 + 10, (__u16)(b[0] | w->tclass << 8), (__u16)(b[0] | t << 8), 2);
	store_bytes(skb, w->l3 + 1, &t, 1, 0);
}

/* Flips a bit that the packet's number among the hits chooses. */
INLINE void damage(struct __sk_buff *skb, struct work *w, __u64 hit)
{
	__u32 from, to;
	__u64 bit = draw(seed, DRAW_BIT, hit);
	__u8 b;

	if (!w->roce) { /* somewhere behind where a UDP header would be */
		from = 14 + 8 + (w->v6 ? 40 : (w->first_byte & 15) * 4);
		to = skb->len;
	} else if (w->part == ICRC) {
		from = w->icrc, to = w->icrc + 4;
	} else if (w->part == PAYLOAD && w->tail > w->payload) {
		from = w->payload, to = w->tail;
	} else {
		from = w->bth, to = w->payload;
	}
	if (from >= to)
		return;
	bit %= (__u64)(to - from) * 8;
	from += bit / 8;
	if (load_bytes(skb, from, &b, 1))
		return;
	b ^= 1 << (bit & 7);
	store_bytes(skb, from, &b, 1, 0);
}
