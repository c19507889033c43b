//go:build ignore

/* What the programs on cables have in common: the kernel's helpers that they call (include/uapi/linux/bpf.h has their numbers), what
 * of a packet they may look at, and the cables' tables. */
#pragma once

typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef unsigned long long __u64;
typedef signed int __s32;

#define SEC(name) __attribute__((section(name), used))
#define INLINE static inline __attribute__((always_inline))
#define barrier_var(v) asm volatile("" : "+r"(v))

/* The beginning of struct __sk_buff. */
struct __sk_buff {
	__u32 len, pkt_type, mark, queue_mapping, protocol, vlan_present, vlan_tci, vlan_proto, priority, ingress_ifindex, ifindex, tc_index;
	__u32 cb[5];
};

enum { MAP_HASH = 1, MAP_ARRAY = 2, MAP_PROG_ARRAY = 3, MAP_PERCPU_ARRAY = 6, MAP_RINGBUF = 27 };
enum { NO_PREALLOC = 1, MMAPABLE = 1 << 10 };
enum { BPF_ANY = 0, BPF_NOEXIST = 1 };

static void *(*map_lookup)(void *map, const void *key) = (void *)1;
static long (*map_update)(void *map, const void *key, const void *value, __u64 flags) = (void *)2;
static __u64 (*now_ns)(void) = (void *)5;
static long (*store_bytes)(struct __sk_buff *skb, __u32 offset, const void *from, __u32 len, __u64 flags) = (void *)9;
static long (*l3_csum_replace)(struct __sk_buff *skb, __u32 offset, __u64 from, __u64 to, __u64 size) = (void *)10;
static long (*tail_call)(void *ctx, void *map, __u32 index) = (void *)12;
static long (*clone_redirect)(struct __sk_buff *skb, __u32 ifindex, __u64 flags) = (void *)13;
static long (*redirect)(__u32 ifindex, __u64 flags) = (void *)23;
static long (*load_bytes)(const struct __sk_buff *skb, __u32 offset, void *to, __u32 len) = (void *)26;
static long (*change_tail)(struct __sk_buff *skb, __u32 len, __u64 flags) = (void *)38;
static long (*ringbuf_output)(void *ringbuf, void *data, __u64 size, __u64 flags) = (void *)130;
static long (*redirect_peer)(__u32 ifindex, __u64 flags) = (void *)155;
static long (*loop)(__u32 n, void *each, void *ctx, __u64 flags) = (void *)181;

/* Maps as libbpf declares them. */
#define __uint(name, value) int(*name)[value]
#define __type(name, type) typeof(type) *name

/* The verdicts of a program (include/uapi/linux/pkt_cls.h). */
enum { SHOT = 2, STOLEN = 4 };

/* The cables' tables (cable/forward.go): where a packet goes, and the chain of stages. Their real sizes are given when they are replaced. */
struct hop { __u32 out, flags; };
enum { HOP_DELAY = 1 };

struct {
	__uint(type, MAP_ARRAY);
	__type(key, __u32);
	__type(value, struct hop);
	__uint(max_entries, 1);
} rb_cables SEC(".maps");

struct {
	__uint(type, MAP_PROG_ARRAY);
	__type(key, __u32);
	__uint(value_size, 4);
	__uint(max_entries, 1);
} rb_stages SEC(".maps");

/* What travels with a packet along the chain. The forwarder leaves all 0 but PLACE, and FATE_SETTLED where it holds. */
enum { CB_PLACE, CB_FATE, CB_FLOW, CB_TIME, CB_TIME_HIGH };
enum {
	FATE_HOLD = 0xffff,        /* how many packets are to overtake it */
	FATE_COPY = 1 << 16,       /* times the number of its copies */
	FATE_COPIES = 0xff << 16,
	FATE_EARLY = 1 << 24,      /* it goes past the delay line */
	FATE_DELAY = 1 << 25,      /* CB_TIME is a delay, not the end of a hold */
	FATE_SETTLED = 1 << 31,    /* the last stage of the chain does what the fate says */
};

INLINE struct hop *hop_of(struct __sk_buff *skb)
{
	__u32 key = skb->ifindex;
	return map_lookup(&rb_cables, &key);
}

/* Sends a packet on: along the chain, and at its end across the cable. */
INLINE int go_on(struct __sk_buff *skb)
{
	__u32 place = skb->cb[CB_PLACE] + 1;
	struct hop *h;

	skb->cb[CB_PLACE] = place;
	tail_call(skb, &rb_stages, place);
	h = hop_of(skb);
	if (!h || !h->out)
		return STOLEN;
	if (h->flags & HOP_DELAY)
		return redirect(h->out, 0);
	return redirect_peer(h->out, 0);
}

/* A stage's counters (cable/stage.go). */
struct counts { __u64 seen, hits, state; };

/* draw is faults.Draw: SplitMix64 (Steele, Lea and Flood 2014, figure 15). */
INLINE __u64 draw(__u64 seed, __u64 purpose, __u64 ordinal)
{
	__u64 z = seed + purpose * 0xbf58476d1ce4e5b9ull + (ordinal + 1) * 0x9e3779b97f4a7c15ull;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}
