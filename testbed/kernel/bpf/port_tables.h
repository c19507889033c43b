/* The tables that the programs of ports share with user space, and what is told there. */
#pragma once

#include "port.h"

#define MAX_PORTS 4096

struct {
	__uint(type, MAP_ARRAY);
	__uint(max_entries, MAX_PORTS);
	__type(key, __u32);
	__type(value, struct port_conf);
} port_confs SEC(".maps");

struct {
	__uint(type, MAP_ARRAY);
	__uint(max_entries, MAX_PORTS);
	__type(key, __u32);
	__type(value, struct port_state);
} port_states SEC(".maps");

struct {
	__uint(type, MAP_ARRAY);
	__uint(max_entries, MAX_PORTS * PRIORITIES);
	__type(key, __u32);
	__type(value, struct group);
} groups SEC(".maps");

struct {
	__uint(type, MAP_ARRAY);
	__uint(max_entries, MAX_PORTS);
	__type(key, __u32);
	__type(value, struct node);
} nodes SEC(".maps");

/* How many bytes of packet memory a node's ports share. */
struct {
	__uint(type, MAP_ARRAY);
	__uint(max_entries, MAX_PORTS);
	__type(key, __u32);
	__type(value, __u64);
} memories SEC(".maps");

INLINE __u64 memory_of(__u32 node)
{
	__u64 *shared = map_lookup(&memories, &node);
	return shared ? *shared : 0;
}

struct {
	__uint(type, MAP_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct slot);
} slots SEC(".maps");

/* The port that an interface is, by its index, which no two of a testbed's interfaces share. */
struct {
	__uint(type, MAP_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} arrivals SEC(".maps");

/* Paced queue pairs by key, their number; their flows, and what is declared of them, by number. */
struct {
	__uint(type, MAP_HASH);
	__uint(max_entries, 1);
	__type(key, struct flow_key);
	__type(value, __u32);
} pace_numbers SEC(".maps");

struct {
	__uint(type, MAP_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct flow);
} flows SEC(".maps");

struct {
	__uint(type, MAP_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct pace_conf);
} pace_confs SEC(".maps");

struct {
	__uint(type, MAP_RINGBUF);
	__uint(max_entries, 1 << 20);
} events SEC(".maps");

struct {
	__uint(type, MAP_ARRAY);
	__uint(max_entries, MAX_PORTS);
	__type(key, __u32);
	__type(value, struct storm);
} storms SEC(".maps");

/* Until when somebody looks after pauses and rates: past it every port runs as if there were none. */
struct {
	__uint(type, MAP_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} lease SEC(".maps");

__u64 events_lost;

INLINE int tended(__u64 now)
{
	__u32 zero = 0;
	__u64 *until = map_lookup(&lease, &zero);
	return until && *until > now;
}

INLINE void tell(__u64 now, __u32 port, __u8 kind, __u8 priority)
{
	struct event *e = ringbuf_reserve(&events, sizeof *e, 0);
	if (!e) {
		COUNT(events_lost);
		return;
	}
	__builtin_memset(e, 0, sizeof *e);
	e->at = now;
	e->port = port;
	e->kind = kind;
	e->priority = priority;
	ringbuf_submit(e, 0);
}
