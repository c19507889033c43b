// What Go cannot do with libibverbs in one crossing: lists of work requests, and calls that
// are macros or inline functions.
#ifndef ROCEBED_IBV_RB_H
#define ROCEBED_IBV_RB_H

#include <infiniband/verbs.h>
#include <stdint.h>

// A send work request without unions. Its scatter-gather list is num_sge entries of the
// call's array, from first_sge on.
struct rb_send_wr {
	uint64_t wr_id;
	uint64_t remote_addr;
	uint64_t compare_add;
	uint64_t swap;
	struct ibv_ah *ah;
	struct ibv_mw *mw;
	struct ibv_mr *bind_mr;
	uint64_t bind_addr;
	uint64_t bind_length;
	uint32_t opcode;
	uint32_t send_flags;
	uint32_t first_sge;
	uint32_t num_sge;
	uint32_t rkey;
	uint32_t imm;      // host order
	uint32_t inv_rkey;
	uint32_t remote_qpn;
	uint32_t remote_qkey;
	uint32_t bind_rkey;
	uint32_t bind_access;
};

struct rb_recv_wr {
	uint64_t wr_id;
	uint32_t first_sge;
	uint32_t num_sge;
};

// How a list of work requests fared: an errno, and how many were taken.
struct rb_posted {
	int err;
	int taken;
};

struct rb_posted rb_post_send(struct ibv_qp *qp, const struct rb_send_wr *wrs, int n, struct ibv_sge *sges);
int rb_ring(struct ibv_qp *qp);
struct rb_posted rb_post_recv(struct ibv_qp *qp, const struct rb_recv_wr *wrs, int n, struct ibv_sge *sges);
struct rb_posted rb_post_srq_recv(struct ibv_srq *srq, const struct rb_recv_wr *wrs, int n, struct ibv_sge *sges);

// A type 1 window is bound by a call of its own.
int rb_bind_mw(struct ibv_qp *qp, const struct rb_send_wr *wr);

int rb_poll(struct ibv_cq *cq, int n, struct ibv_wc *wcs);
int rb_req_notify(struct ibv_cq *cq, int solicited_only);

// Takes up to n events from a non-blocking channel without acknowledging them.
int rb_get_cq_events(struct ibv_comp_channel *channel, struct ibv_cq **cqs, int n);

struct rb_async {
	int type;
	void *element; // ibv_qp, ibv_cq, ibv_srq, or null
	struct ibv_async_event event;
};

// Takes one event from a non-blocking context without acknowledging it; -1 when there is none.
int rb_get_async_event(struct ibv_context *ctx, struct rb_async *out);

struct ibv_mr *rb_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access);
struct ibv_mw *rb_alloc_mw(struct ibv_pd *pd, int type);
int rb_dealloc_mw(struct ibv_mw *mw);
int rb_query_port(struct ibv_context *ctx, uint8_t port, struct ibv_port_attr *attr);

// Calls on libibverbs that return an errno, or -1 and set it, made into an errno.
int rb_errno(int result);

#endif
