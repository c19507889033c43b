package images

// want is a program that the guest is to have.
type want struct {
	name     string
	pkg      string // Debian's name of the package that has it
	optional bool
}

// programs is what can be run inside a guest besides rocebed itself and busybox's applets.
var programs = []want{
	{name: "bash", pkg: "bash"},
	{name: "busybox", pkg: "busybox-static"},
	{name: "ip", pkg: "iproute2"},
	{name: "tc", pkg: "iproute2"},
	{name: "rdma", pkg: "iproute2"},
	{name: "ss", pkg: "iproute2"},
	{name: "bridge", pkg: "iproute2"},
	{name: "ethtool", pkg: "ethtool"},
	{name: "kmod", pkg: "kmod"},
	{name: "tcpdump", pkg: "tcpdump"},
	{name: "iperf3", pkg: "iperf3"},
	{name: "ib_write_bw", pkg: "perftest"},
	{name: "ib_write_lat", pkg: "perftest"},
	{name: "ib_read_bw", pkg: "perftest"},
	{name: "ib_read_lat", pkg: "perftest"},
	{name: "ib_send_bw", pkg: "perftest"},
	{name: "ib_send_lat", pkg: "perftest"},
	{name: "ib_atomic_bw", pkg: "perftest"},
	{name: "ib_atomic_lat", pkg: "perftest"},
	{name: "rping", pkg: "rdmacm-utils"},
	{name: "ucmatose", pkg: "rdmacm-utils"},
	{name: "ibv_rc_pingpong", pkg: "ibverbs-utils"},
	{name: "ibv_uc_pingpong", pkg: "ibverbs-utils"},
	{name: "ibv_ud_pingpong", pkg: "ibverbs-utils"},
	{name: "ibv_srq_pingpong", pkg: "ibverbs-utils"},
	{name: "ibv_devinfo", pkg: "ibverbs-utils"},
	{name: "ibv_devices", pkg: "ibverbs-utils"},
	{name: "strace", pkg: "strace", optional: true},
	{name: "nft", pkg: "nftables", optional: true},
	{name: "bpftool", pkg: "bpftool", optional: true},
	{name: "ping", pkg: "iputils-ping", optional: true},
}

// loaded are files that programs open by themselves, as shell patterns: what ldd
// cannot see. The first pattern that matches anything is enough for a required one.
var loaded = []struct {
	patterns []string
	pkg      string
	optional bool
}{
	{patterns: []string{"/usr/lib/*/libibverbs/librxe-*.so", "/usr/lib64/libibverbs/librxe-*.so", "/usr/lib/libibverbs/librxe-*.so"}, pkg: "ibverbs-providers"},
	// rping's threads are cancelled, for which the C library loads the unwinder.
	{patterns: []string{"/lib/*/libgcc_s.so.1", "/usr/lib/*/libgcc_s.so.1", "/lib64/libgcc_s.so.1", "/usr/lib/libgcc_s.so.1"}, pkg: "libgcc-s1"},
	{patterns: []string{"/usr/lib/tc/*.dist", "/usr/lib/*/tc/*.dist", "/usr/share/tc/*.dist", "/usr/lib64/tc/*.dist"}, pkg: "iproute2", optional: true},
	{patterns: []string{"/lib/terminfo/*/*", "/usr/share/terminfo/[dlsvtx]/*"}, pkg: "ncurses-base", optional: true},
	{patterns: []string{"/etc/protocols"}, pkg: "netbase", optional: true},
	{patterns: []string{"/etc/services"}, pkg: "netbase", optional: true},
	{patterns: []string{"/etc/iproute2/*", "/usr/share/iproute2/*"}, pkg: "iproute2", optional: true},
}

// modules is what the guest's kernel may load: names, or globs over module names
// prefixed by the folder they live in. What they depend on comes along.
var modules = []string{
	"rdma_rxe", "ib_uverbs", "rdma_ucm", "ib_umad",
	"kernel/net/sched/*",
	"veth", "bridge", "vrf", "ifb", "dummy", "tun", "macvlan", "8021q", "vxlan",
	"kernel/net/netfilter/nf_tables*", "kernel/net/netfilter/nft_*", "nf_conntrack",
	"nvme_rdma", "nvmet_rdma",
	"9p", "9pnet_virtio", "overlay",
	"inet_diag", "tcp_diag", "udp_diag", "packet_diag", "netlink_diag", "unix_diag", "raw_diag",
	"tcp_dctcp", "tcp_bbr",
	"crc32c", "crc32", "crc32_generic", "crc32c_generic", "crc32_pclmul",
	"udmabuf", "virtio_rng",
}

// required are the modules without which a guest has no purpose; one that the kernel
// has built in is fine.
var required = []string{"rdma_rxe", "ib_uverbs", "rdma_ucm", "veth", "sch_netem", "sch_red", "sch_drr", "sch_plug", "sch_htb"}
