/* What a port is declared to be, what it is doing, and what it tells. All times are wall times of CLOCK_MONOTONIC in
 * nanoseconds, all sizes bytes of frames without preamble, check sequence and gap.
 *
 * A port's number is the major number of its qdisc's handle, from 1 on. Ports of one node share its packet memory. The
 * accounts are those of the software switch (datapath/asic/memory.go): a lossless frame that waits is on the account of the
 * ingress group that it came in by, a lossy one on its egress queue's. */
#pragma once

#include "kernel.h"

#define PRIORITIES 8

/* Declared: user space writes, programs read. */

struct queue_conf {
	__u64 reserved;  /* lossy bytes that the queue may hold whatever else waits */
	__u32 alpha;     /* of what is left of the shared memory, in 1024ths */
	__u32 weight;    /* bytes of a round; 0: strict */
	__u64 cost;      /* ns << 16 a byte that the queue is limited to, beside the line; 0: not */
	__u32 kmin, kmax;  /* marking begins above kmin; kmax 0: none */
	__u64 slope;     /* 2^32 * pmax / (kmax - kmin), << 8 */
	/* The curve that would be right, where another one is in force: what differs for it is counted. */
	__u32 right_kmin, right_kmax;
	__u64 right_slope;
	__u32 wrong;     /* the curve in force is another one than it */
	__u32 pad;
};

struct group_conf {
	__u64 reserved;
	__u64 xoff;      /* beyond reserved; with alpha it follows from the shared memory */
	__u64 xon;       /* how far below that the pause ends */
	__u64 headroom;
	__u32 alpha;     /* 1024ths; 0: xoff counts */
	__u32 lossless;
};

struct port_conf {
	__u32 node;
	__u32 first_slot; /* its part of the pool of slots */
	__u32 slots;
	__u32 overhead;   /* bytes that a frame costs on the line beyond its length */
	__u32 minimum;    /* and what one costs at least */
	__u32 poll;       /* ns after which a paused port looks again */
	__u64 cost;       /* ns << 16 a byte */
	__u64 lag;        /* ns that the line may make up for when it was served late */
	__u64 quantum;    /* ns << 16 of a pause quantum: 512 bit times */
	__u64 notice;     /* ns between two notices of marked packets of one flow */
	__u64 watched;    /* DSCPs of which what comes in is counted, bit i for i */
	__u8  priority[64]; /* of what comes in, and of what the node itself sends; by DSCP */
	__u8  obey;       /* priorities whose pauses are obeyed, bit i for i */
	__u8  stuck;      /* priorities that are never served */
	__u8  paced;      /* flows with a rate of their own are looked for */
	__u8  sends;      /* priorities that the peer is paused in */
	__u8  mac[6];     /* the source of its pause frames */
	__u8  pad[6];
	struct queue_conf queue[PRIORITIES];
	struct group_conf group[PRIORITIES];
};

/* What a watchdog declares: priorities that are taken out of their pause, and those whose frames are dropped. */
struct storm {
	__u8 freed, dropping;
	__u8 pad[2];
};

/* State: programs write, user space reads. */

struct list {
	__u32 first, last; /* slots by number in the port's part, from 1 on; 0: none */
	__u32 packets;
	__u32 pad;
};

struct queue {
	struct list fifo;
	__u64 bytes;       /* waiting, flows included */
	__u64 lossy;       /* of them, what is on the queue's account */
	__u64 high;        /* the most that bytes was */
	__u64 in, out;     /* frames that went into the FIFO and came out of it, ever */
	__u64 tx_frames, tx_bytes;
	__u64 drops;       /* for want of memory */
	__u64 storm_drops;
	__u64 next;        /* when a limited queue may send again */
	__s64 deficit;
	__u32 packets;     /* waiting, flows included */
	__u32 flows;       /* flows with frames waiting: the last of the ring, by number from 1 on */
	__u32 turn;        /* whether a flow's turn is next */
	__u32 ready;       /* the flow whose turn it is, by number; 0: the FIFO's */
	/* Pauses that the peer asked for. */
	__u64 until, since, paused; /* paused: ns altogether, up to the last that ended */
	__u64 rx_pause, rx_xoff;    /* frames that spoke of the priority; pauses that began */
	__u64 against;     /* frames that were sent while the peer had the priority paused, since the port doesn't obey */
	__u64 blocked;     /* when it was seen paused last */
};

struct group {
	__u64 held, head, lossy; /* lossless bytes, those in headroom apart; lossy ones that came in by it */
	__u64 high, head_high;
	__u64 xoffs, headroom_drops;
	__u32 xoff;        /* it asks its peer for a pause */
	__u32 told;        /* the peer has been told */
	__u64 tx_pause;    /* pause frames that told it; the agent's come besides */
	__u64 frames, watched; /* that came in by it; and of them those of the port's watched DSCPs */
	__u32 next;        /* in its node's list of paused groups; 0: the last */
	__u32 listed;      /* it is in it; perhaps its pause is over */
};

struct port_state {
	__u64 free_at;     /* when the line is free */
	__u32 packets;     /* waiting */
	__u32 spare;       /* slots that were used before: the first of a list, from 1 on */
	__u32 fresh;       /* slots that were ever used */
	__u32 last;        /* the weighted queue that was served last */
	__u64 wake;        /* when one of those that may not send now may */
	__u32 may;         /* queues that may send now */
	__u32 held;        /* when it was looked at last, all that waited was paused or paced */
	__u64 late;        /* ns of the line that were lost because it was served late, beyond its lag */
	__u64 slot_drops;  /* frames dropped because all slots were taken */
	__u64 lost;        /* frames that could not be taken back from their slot; always 0 */
	struct list express; /* pause frames, before everything */
	struct queue queue[PRIORITIES];
};

struct node {
	struct bpf_spin_lock lock;
	__u32 paused;      /* the first of a list of groups, by their index in groups; 0: none */
	__u64 used;        /* of it */
	__u64 total, high; /* all that waits, and the most of it */
	__u64 resume;      /* with less than that used one of paused may go on */
};

struct slot {
	struct sk_buff __kptr *skb;
	__u32 next;
	__u32 len;
	__u32 in;          /* the port that it came in by; 0: none */
	__u8  group;
	__u8  lossless;
	__u8  express;     /* a pause frame, which is on no account */
	__u8  pad;
};

/* What a queue pair sends has one rate and one clock, as a NIC has one limiter a queue pair. It waits as two flows, which take turns, for a requester and a responder don't
 * wait for each other: those of queue pair n (from 1 on) are 2n - 1, its requests, and 2n, its responses. */
struct flow_key {
	__u8  daddr[16];   /* IPv4 as ::ffff:a.b.c.d */
	__u32 qpn;
	__u16 port;
	__u16 pad;
};

struct flow {
	__u32 after_it, before_it; /* in its queue's ring, by number from 1 on */
	struct list list;
	__u64 bytes;       /* waiting */
	__u64 next;        /* when the queue pair may send again: that of its requests counts */
	__u64 after;       /* frames that must have left the FIFO before it begins */
	__u64 tx_frames, tx_bytes;
};

struct pace_conf {   /* of a queue pair */
	__u64 cost;        /* ns << 16 a byte; 0: as fast as the line */
	__u32 closing;     /* as soon as nothing waits its frames go into the FIFO again */
	__u32 pad;
};

/* What ports tell at once. */

enum event_kind {
	EVENT_XOFF = 1, /* a group reached its threshold */
	EVENT_XON,      /* and is below it again */
	EVENT_OBEYED,   /* the port was paused, perhaps again */
	EVENT_CNP,      /* a CNP came in */
	EVENT_MARKED,   /* a marked packet came in whose flow is due a CNP */
	EVENT_TOLD,     /* the first frame after a threshold was reached came in, and the kernel has told the peer */
};

struct event {
	__u64 at;
	__u16 port;
	__u8  kind;
	__u8  priority;
	__u32 qpn;         /* of CNPs and marked packets: to which they were sent */
	__u8  saddr[16];
};
