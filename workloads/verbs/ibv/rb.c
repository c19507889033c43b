//go:build ibv && linux && cgo

#include "rb.h"

#include <arpa/inet.h>
#include <errno.h>
#include <rdma/ib_user_verbs.h>
#include <string.h>
#include <unistd.h>

// So many work requests are handed to the device at a time: enough to make a doorbell's
// cost small, few enough for the stack.
enum { CHUNK = 64 };

int rb_errno(int result)
{
	if (result == 0)
		return 0;
	if (result > 0)
		return result;
	return errno ? errno : EIO;
}

static void fill(struct ibv_send_wr *to, const struct rb_send_wr *from, struct ibv_sge *sges)
{
	memset(to, 0, sizeof(*to));
	to->wr_id = from->wr_id;
	to->opcode = from->opcode;
	to->send_flags = from->send_flags;
	to->sg_list = sges + from->first_sge;
	to->num_sge = from->num_sge;
	switch (to->opcode) {
	case IBV_WR_SEND_WITH_INV:
	case IBV_WR_LOCAL_INV:
		to->invalidate_rkey = from->inv_rkey;
		break;
	default:
		to->imm_data = htonl(from->imm);
	}
	switch (to->opcode) {
	case IBV_WR_ATOMIC_CMP_AND_SWP:
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		to->wr.atomic.remote_addr = from->remote_addr;
		to->wr.atomic.rkey = from->rkey;
		to->wr.atomic.compare_add = from->compare_add;
		to->wr.atomic.swap = from->swap;
		break;
	case IBV_WR_BIND_MW:
		to->bind_mw.mw = from->mw;
		to->bind_mw.rkey = from->bind_rkey;
		to->bind_mw.bind_info.mr = from->bind_mr;
		to->bind_mw.bind_info.addr = from->bind_addr;
		to->bind_mw.bind_info.length = from->bind_length;
		to->bind_mw.bind_info.mw_access_flags = from->bind_access;
		break;
	default:
		if (from->ah) {
			to->wr.ud.ah = from->ah;
			to->wr.ud.remote_qpn = from->remote_qpn;
			to->wr.ud.remote_qkey = from->remote_qkey;
		} else {
			to->wr.rdma.remote_addr = from->remote_addr;
			to->wr.rdma.rkey = from->rkey;
		}
	}
}

struct rb_posted rb_post_send(struct ibv_qp *qp, const struct rb_send_wr *wrs, int n, struct ibv_sge *sges)
{
	struct ibv_send_wr list[CHUNK], *bad;
	struct rb_posted r = {0, 0};

	while (r.taken < n) {
		int k = n - r.taken < CHUNK ? n - r.taken : CHUNK;
		for (int i = 0; i < k; i++) {
			fill(&list[i], &wrs[r.taken + i], sges);
			list[i].next = i + 1 < k ? &list[i + 1] : NULL;
		}
		bad = list;
		r.err = rb_errno(ibv_post_send(qp, list, &bad));
		if (r.err) {
			if (bad >= list && bad < list + k)
				r.taken += bad - list;
			return r;
		}
		r.taken += k;
	}
	return r;
}

// rb_ring rings a queue pair's doorbell without a new work request: the kernel then looks at what is in its send queue already. librxe refuses to post an
// empty list, so the command that it would send is written here (rdma/ib_user_verbs.h).
int rb_ring(struct ibv_qp *qp)
{
	struct ib_uverbs_post_send_resp resp;
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		struct ib_uverbs_post_send post;
	} cmd = {
		.hdr = {
			.command = IB_USER_VERBS_CMD_POST_SEND,
			.in_words = sizeof(cmd) / 4,
			.out_words = sizeof(resp) / 4,
		},
		.post = {
			.response = (uintptr_t)&resp,
			.qp_handle = qp->handle,
			.wqe_size = sizeof(struct ib_uverbs_send_wr),
		},
	};
	return write(qp->context->cmd_fd, &cmd, sizeof(cmd)) == sizeof(cmd) ? 0 : rb_errno(-1);
}

static void link_recv(struct ibv_recv_wr *list, const struct rb_recv_wr *wrs, int k, struct ibv_sge *sges)
{
	for (int i = 0; i < k; i++) {
		list[i].wr_id = wrs[i].wr_id;
		list[i].sg_list = sges + wrs[i].first_sge;
		list[i].num_sge = wrs[i].num_sge;
		list[i].next = i + 1 < k ? &list[i + 1] : NULL;
	}
}

static struct rb_posted post_recv(struct ibv_qp *qp, struct ibv_srq *srq, const struct rb_recv_wr *wrs, int n, struct ibv_sge *sges)
{
	struct ibv_recv_wr list[CHUNK], *bad;
	struct rb_posted r = {0, 0};

	while (r.taken < n) {
		int k = n - r.taken < CHUNK ? n - r.taken : CHUNK;
		link_recv(list, wrs + r.taken, k, sges);
		bad = list;
		r.err = rb_errno(qp ? ibv_post_recv(qp, list, &bad) : ibv_post_srq_recv(srq, list, &bad));
		if (r.err) {
			if (bad >= list && bad < list + k)
				r.taken += bad - list;
			return r;
		}
		r.taken += k;
	}
	return r;
}

struct rb_posted rb_post_recv(struct ibv_qp *qp, const struct rb_recv_wr *wrs, int n, struct ibv_sge *sges)
{
	return post_recv(qp, NULL, wrs, n, sges);
}

struct rb_posted rb_post_srq_recv(struct ibv_srq *srq, const struct rb_recv_wr *wrs, int n, struct ibv_sge *sges)
{
	return post_recv(NULL, srq, wrs, n, sges);
}

int rb_bind_mw(struct ibv_qp *qp, const struct rb_send_wr *wr)
{
	struct ibv_mw_bind bind = {
		.wr_id = wr->wr_id,
		.send_flags = wr->send_flags,
		.bind_info = {
			.mr = wr->bind_mr,
			.addr = wr->bind_addr,
			.length = wr->bind_length,
			.mw_access_flags = wr->bind_access,
		},
	};
	return rb_errno(ibv_bind_mw(qp, wr->mw, &bind));
}

int rb_poll(struct ibv_cq *cq, int n, struct ibv_wc *wcs)
{
	return ibv_poll_cq(cq, n, wcs);
}

int rb_req_notify(struct ibv_cq *cq, int solicited_only)
{
	return rb_errno(ibv_req_notify_cq(cq, solicited_only));
}

int rb_get_cq_events(struct ibv_comp_channel *channel, struct ibv_cq **cqs, int n)
{
	void *context;
	int i;

	for (i = 0; i < n; i++)
		if (ibv_get_cq_event(channel, &cqs[i], &context))
			break;
	return i;
}

int rb_get_async_event(struct ibv_context *ctx, struct rb_async *out)
{
	if (ibv_get_async_event(ctx, &out->event))
		return -1;
	out->type = out->event.event_type;
	switch (out->event.event_type) {
	case IBV_EVENT_CQ_ERR:
		out->element = out->event.element.cq;
		break;
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_COMM_EST:
	case IBV_EVENT_SQ_DRAINED:
	case IBV_EVENT_PATH_MIG:
	case IBV_EVENT_PATH_MIG_ERR:
	case IBV_EVENT_QP_LAST_WQE_REACHED:
		out->element = out->event.element.qp;
		break;
	case IBV_EVENT_SRQ_ERR:
	case IBV_EVENT_SRQ_LIMIT_REACHED:
		out->element = out->event.element.srq;
		break;
	default:
		out->element = NULL;
	}
	return 0;
}

struct ibv_mr *rb_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	return ibv_reg_mr(pd, addr, length, access);
}

struct ibv_mw *rb_alloc_mw(struct ibv_pd *pd, int type)
{
	return ibv_alloc_mw(pd, type);
}

int rb_dealloc_mw(struct ibv_mw *mw)
{
	return rb_errno(ibv_dealloc_mw(mw));
}

int rb_query_port(struct ibv_context *ctx, uint8_t port, struct ibv_port_attr *attr)
{
	return rb_errno(ibv_query_port(ctx, port, attr));
}
