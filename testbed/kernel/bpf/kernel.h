/* What these programs need of the kernel: its types, as far as they are used, and functions that
 * programs may call. Offsets are the running kernel's (CO-RE). */
#pragma once

typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef unsigned long long __u64;
typedef int __s32;
typedef long long __s64;

#define NULL ((void *)0)

/* Counts where several processors may count at once: whatever isn't under a qdisc's lock or a node's. */
#define COUNT(counter) __sync_fetch_and_add(&(counter), 1)
#define SEC(name) __attribute__((section(name), used))
#define INLINE static inline __attribute__((always_inline))
#define __ksym __attribute__((section(".ksyms")))
#define __kptr __attribute__((btf_type_tag("kptr")))
#define __uint(name, value) int(*name)[value]
#define __type(name, type) typeof(type) *name

struct __sk_buff;
struct bpf_spin_lock;

enum { MAP_HASH = 1, MAP_ARRAY = 2, MAP_LRU_HASH = 9, MAP_RINGBUF = 27 };
enum { BPF_ANY = 0 };
enum { ACT_UNSPEC = -1, ACT_OK = 0, ACT_SHOT = 2, ACT_STOLEN = 4 };

/* Helpers, by their numbers in include/uapi/linux/bpf.h. */
static void *(*map_lookup)(void *map, const void *key) = (void *)1;
static long (*map_update)(void *map, const void *key, const void *value, __u64 flags) = (void *)2;
static __u64 (*now_ns)(void) = (void *)5;
static __u32 (*random32)(void) = (void *)7;
static long (*store_bytes)(struct __sk_buff *skb, __u32 offset, const void *from, __u32 len, __u64 flags) = (void *)9;
static long (*clone_redirect)(struct __sk_buff *skb, __u32 ifindex, __u64 flags) = (void *)13;
static long (*change_tail)(struct __sk_buff *skb, __u32 len, __u64 flags) = (void *)38;
static long (*load_bytes)(const struct __sk_buff *skb, __u32 offset, void *to, __u32 len) = (void *)26;
static long (*spin_lock)(struct bpf_spin_lock *lock) = (void *)93;
static long (*spin_unlock)(struct bpf_spin_lock *lock) = (void *)94;
static long (*ecn_set_ce)(struct __sk_buff *skb) = (void *)97;
static void *(*ringbuf_reserve)(void *ringbuf, __u64 size, __u64 flags) = (void *)131;
static void (*ringbuf_submit)(void *data, __u64 flags) = (void *)132;
static void *(*kptr_xchg)(void *at, void *put) = (void *)194;

struct bpf_spin_lock {
	__u32 val;
};

struct bpf_dynptr {
	__u64 __opaque[2];
} __attribute__((aligned(8)));

/* The beginning of struct __sk_buff. */
struct __sk_buff {
	__u32 len, pkt_type, mark, queue_mapping, protocol, vlan_present, vlan_tci, vlan_proto, priority, ingress_ifindex, ifindex, tc_index;
	__u32 cb[5];
};

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct sk_buff {
	__u32 len;
	int skb_iif;
	char cb[48];
};

struct qdisc_skb_cb {
	struct {
		unsigned int pkt_len;
	};
	unsigned char data[20]; /* to programs at a hook: cb */
};

struct qdisc_skb_head {
	__u32 qlen;
};

struct gnet_stats_queue {
	__u32 qlen, backlog, drops, requeues, overlimits;
};

struct Qdisc {
	__u32 limit;
	__u32 handle;
	struct qdisc_skb_head q;
	struct gnet_stats_queue qstats;
};

struct bpf_sk_buff_ptr {
	struct sk_buff *skb;
};

struct nlattr;
struct netlink_ext_ack;

struct Qdisc_ops {
	int (*enqueue)(struct sk_buff *, struct Qdisc *, struct sk_buff **);
	struct sk_buff *(*dequeue)(struct Qdisc *);
	int (*init)(struct Qdisc *, struct nlattr *, struct netlink_ext_ack *);
	void (*reset)(struct Qdisc *);
	void (*destroy)(struct Qdisc *);
	char id[16];
};

#pragma clang attribute pop

struct bpf_iter_num {
	__u64 __opaque[1];
} __attribute__((aligned(8)));

int bpf_iter_num_new(struct bpf_iter_num *it, int start, int end) __ksym;
int *bpf_iter_num_next(struct bpf_iter_num *it) __ksym;
void bpf_iter_num_destroy(struct bpf_iter_num *it) __ksym;

int bpf_dynptr_from_skb(struct sk_buff *skb, __u64 flags, struct bpf_dynptr *ptr) __ksym;
void *bpf_dynptr_slice(const struct bpf_dynptr *p, __u32 offset, void *buffer, __u32 size) __ksym;

void bpf_qdisc_skb_drop(struct sk_buff *skb, struct bpf_sk_buff_ptr *to_free) __ksym;
void bpf_kfree_skb(struct sk_buff *skb) __ksym;
void bpf_qdisc_watchdog_schedule(struct Qdisc *sch, __u64 expire, __u64 slack) __ksym;
void bpf_qdisc_bstats_update(struct Qdisc *sch, const struct sk_buff *skb) __ksym;

INLINE __u32 packet_len(struct sk_buff *skb)
{
	return ((struct qdisc_skb_cb *)skb->cb)->pkt_len;
}
