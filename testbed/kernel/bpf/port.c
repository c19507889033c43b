//go:build ignore

/* A port as a queueing discipline: it shapes to the line's rate, keeps a queue a priority, obeys pauses, paces flows, and keeps
 * the accounts that pauses are asked for by. One program serves every port of every node. */
#include "port_arrive.h"
#include "port_dequeue.h"
#include "port_enqueue.h"
#include "port_mark.h"

char __license[] SEC("license") = "GPL";

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
