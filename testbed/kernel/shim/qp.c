/*
 * Raises the times of a program's queue pairs to the fabric's dilation: preloaded into programs that run on
 * a dilated fabric, it stands before libibverbs' ibv_modify_qp. A local ACK timeout's exponent grows by
 * ROCEBED_DILATION_EXPONENT, a minimum RNR delay becomes the shortest of the specification's table that is long
 * enough. What has no exact image is taken as far as it goes, with a warning on standard error.
 *
 * It also stands before ibv_get_device_list: RDMA devices that all namespaces share are listed in each, and a
 * program that takes the first would take another node's. Only those that ROCEBED_DEVICES names, with commas
 * between, are shown.
 *
 * Built by the Makefile (cc -shared -fPIC) and put into the rocebed binary.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_EXPONENT 31

/* Units of 10 microseconds (InfiniBand specification, table 45). */
static const unsigned rnr_delay[32] = {
	65536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192,
	256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152,
};

static void warn_once(atomic_flag *said, const char *what)
{
	if (!atomic_flag_test_and_set(said))
		fprintf(stderr, "rocebed: %s at this fabric's dilation: taken as far as it goes\n", what);
}

static unsigned char raised_timeout(unsigned char exponent, int by)
{
	static atomic_flag said = ATOMIC_FLAG_INIT;

	if (exponent == 0) /* none */
		return 0;
	if (exponent + by > MAX_EXPONENT) {
		warn_once(&said, "a queue pair's local ACK timeout is longer than the longest there is");
		return MAX_EXPONENT;
	}
	return exponent + by;
}

static unsigned char raised_rnr(unsigned char timer, int by)
{
	static atomic_flag said_long = ATOMIC_FLAG_INIT;
	unsigned long long want = (unsigned long long)rnr_delay[timer & 31] << by;
	int best = -1;

	for (int i = 0; i < 32; i++)
		if (rnr_delay[i] >= want && (best < 0 || rnr_delay[i] < rnr_delay[best]))
			best = i;
	if (best < 0) {
		warn_once(&said_long, "a queue pair's minimum RNR delay is longer than the longest there is");
		return 0;
	}
	return best;
}

int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask)
{
	static int (*real)(struct ibv_qp *, struct ibv_qp_attr *, int);
	const char *text = getenv("ROCEBED_DILATION_EXPONENT");
	int by = text ? atoi(text) : 0;

	if (!real) {
		real = dlvsym(RTLD_NEXT, "ibv_modify_qp", "IBVERBS_1.1");
		if (!real)
			real = dlsym(RTLD_NEXT, "ibv_modify_qp");
		if (!real) {
			fprintf(stderr, "rocebed: libibverbs has no ibv_modify_qp\n");
			return ENOSYS;
		}
	}
	if (by <= 0 || by > MAX_EXPONENT || !(attr_mask & (IBV_QP_TIMEOUT | IBV_QP_MIN_RNR_TIMER)))
		return real(qp, attr, attr_mask);

	struct ibv_qp_attr raised = *attr;

	if (attr_mask & IBV_QP_TIMEOUT)
		raised.timeout = raised_timeout(attr->timeout, by);
	if (attr_mask & IBV_QP_MIN_RNR_TIMER)
		raised.min_rnr_timer = raised_rnr(attr->min_rnr_timer, by);
	return real(qp, &raised, attr_mask);
}

static int named(const char *list, const char *name)
{
	size_t n = strlen(name);

	for (const char *at = list; (at = strstr(at, name)); at += n)
		if ((at == list || at[-1] == ',') && (at[n] == ',' || at[n] == '\0'))
			return 1;
	return 0;
}

struct ibv_device **ibv_get_device_list(int *num)
{
	static struct ibv_device **(*real)(int *);
	const char *own = getenv("ROCEBED_DEVICES");
	struct ibv_device **list;
	int all = 0, kept = 0;

	if (!real) {
		real = dlvsym(RTLD_NEXT, "ibv_get_device_list", "IBVERBS_1.1");
		if (!real)
			real = dlsym(RTLD_NEXT, "ibv_get_device_list");
		if (!real) {
			fprintf(stderr, "rocebed: libibverbs has no ibv_get_device_list\n");
			errno = ENOSYS;
			return NULL;
		}
	}
	list = real(&all);
	if (list && own) {
		/* Not by ibv_get_device_name: without a version the loader takes the oldest, which wants another struct.
		 * What is taken out is not given back to libibverbs: a few bytes of a program that lists once. */
		for (int i = 0; i < all; i++)
			if (named(own, list[i]->name))
				list[kept++] = list[i];
		list[kept] = NULL;
		all = kept;
	}
	if (num)
		*num = all;
	return list;
}
