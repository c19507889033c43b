//go:build ibv && linux && cgo

package ibv

/*
#cgo LDFLAGS: -libverbs
#include "rb.h"
#include <stdlib.h>
*/
import "C"

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"syscall"
	"unsafe"

	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/workloads/verbs"
	"golang.org/x/sys/unix"
)

// Available says whether this binary has libibverbs in it.
const Available = true

// port is the only port: the kernel's rxe has one, and topo names NICs, not ports of NICs.
const port = 1

// rxeVendor is the vendor ID that rxe reports (drivers/infiniband/sw/rxe/rxe_param.h).
const rxeVendor = 0xffffff

type device struct {
	name string
	lp   loop.Loop
	opt  Options
	rxe  bool

	ctx      *C.struct_ibv_context
	channel  *C.struct_ibv_comp_channel
	attr     verbs.DeviceAttr
	portAttr verbs.PortAttr
	work     *worker
	sources  map[int32]func()

	// Owned by the loop.
	gids    []netip.Addr
	closed  bool
	onAsync func(verbs.AsyncEvent)
	qps     map[uint32]*qp // those that live, by number
	post    scratch
	wcs     *[pollBatch]C.struct_ibv_wc
	deliver func()

	// Owned by the poller.
	events [eventBatch]*C.struct_ibv_cq

	// Owned by the worker.
	last     bool
	order    uint64
	leftover map[object]uint64 // what lives, by order of creation

	// Shared.
	mu        sync.Mutex
	elements  map[unsafe.Pointer]any // *qp, *cq, *srq by the address that events name
	arrived   []*cq
	async     []verbs.AsyncEvent
	delivered []*cq // the spare slice of arrived
	scheduled bool
}

// object is what Close destroys when nobody did.
type object interface {
	// destroy frees the C object. It runs on the worker.
	destroy() error
}

// Devices lists the names of this machine's RDMA devices.
func Devices() ([]string, error) {
	var names []string
	err := eachDevice(func(d *C.struct_ibv_device, name string) bool {
		names = append(names, name)
		return true
	})
	return names, err
}

func eachDevice(visit func(d *C.struct_ibv_device, name string) bool) error {
	var n C.int
	list, err := C.ibv_get_device_list(&n)
	if list == nil {
		return fmt.Errorf("list RDMA devices: %w (is ib_uverbs loaded, and /dev/infiniband there?)", err)
	}
	defer C.ibv_free_device_list(list)
	for _, d := range unsafe.Slice(list, int(n)) {
		if !visit(d, C.GoString(C.ibv_get_device_name(d))) {
			break
		}
	}
	return nil
}

// Open opens a device. Its calls are made on the loop, whose dilation must be the options'.
// Open itself may block and may be called anywhere.
func Open(l loop.Loop, deviceName string, opt Options) (verbs.Device, error) {
	if r, ok := l.(*loop.Real); ok && r.Dilation().Factor() != opt.Dilation.Factor() {
		return nil, fmt.Errorf("%s: open: the loop's dilation is %v, the device's is to be %v", deviceName, r.Dilation(), opt.Dilation)
	}
	d := &device{
		name: deviceName, lp: l, opt: opt,
		work:     newWorker(),
		qps:      map[uint32]*qp{},
		leftover: map[object]uint64{},
		elements: map[unsafe.Pointer]any{},
	}
	d.deliver = d.deliverEvents
	if err := d.open(); err != nil {
		return nil, fmt.Errorf("%s: open: %w", deviceName, err)
	}
	go d.work.run(&d.last)
	return d, nil
}

func (d *device) open() (err error) {
	var known []string
	var openErr error
	err = eachDevice(func(dev *C.struct_ibv_device, name string) bool {
		known = append(known, name)
		if name != d.name {
			return true
		}
		d.ctx, openErr = C.ibv_open_device(dev)
		return false
	})
	switch {
	case err != nil:
		return err
	case d.ctx != nil:
	case openErr != nil:
		return openErr
	default:
		return fmt.Errorf("no such RDMA device (there are: %s)", cmpOr(strings.Join(known, ", "), "none"))
	}
	defer func() {
		if err != nil {
			d.free()
		}
	}()
	if err := d.query(); err != nil {
		return err
	}
	if d.gids, err = d.queryGIDs(); err != nil {
		return err
	}
	if d.channel, err = C.ibv_create_comp_channel(d.ctx); d.channel == nil {
		return fmt.Errorf("create completion channel: %w", err)
	}
	d.wcs = (*[pollBatch]C.struct_ibv_wc)(C.calloc(pollBatch, C.sizeof_struct_ibv_wc))
	for _, fd := range []C.int{d.channel.fd, d.ctx.async_fd} {
		if err := unix.SetNonblock(int(fd), true); err != nil {
			return fmt.Errorf("make event descriptor non-blocking: %w", err)
		}
	}
	d.sources = map[int32]func(){
		int32(d.channel.fd):   d.takeCQEvents,
		int32(d.ctx.async_fd): d.takeAsyncEvents,
	}
	return watch(d.sources)
}

// free undoes open, but for watch.
func (d *device) free() error {
	var errs []error
	d.post.free()
	C.free(unsafe.Pointer(d.wcs))
	if d.channel != nil {
		errs = append(errs, errnoOf(C.rb_errno(C.ibv_destroy_comp_channel(d.channel))))
	}
	errs = append(errs, errnoOf(C.rb_errno(C.ibv_close_device(d.ctx))))
	return errors.Join(errs...)
}

func (d *device) query() error {
	var a C.struct_ibv_device_attr
	if err := errnoOf(C.rb_errno(C.ibv_query_device(d.ctx, &a))); err != nil {
		return fmt.Errorf("query device: %w", err)
	}
	d.attr = verbs.DeviceAttr{
		MaxQP: int(a.max_qp), MaxQPWR: int(a.max_qp_wr), MaxSGE: int(a.max_sge),
		MaxCQ: int(a.max_cq), MaxCQE: int(a.max_cqe), MaxMR: int(a.max_mr), MaxPD: int(a.max_pd),
		MaxSRQ: int(a.max_srq), MaxSRQWR: int(a.max_srq_wr), MaxSRQSGE: int(a.max_srq_sge),
		MaxQPRDAtomic: int(a.max_qp_rd_atom), MaxQPInitRDAtomic: int(a.max_qp_init_rd_atom),
		MaxMW: int(a.max_mw), MaxAH: int(a.max_ah),
		MWType1:         a.device_cap_flags&C.IBV_DEVICE_MEM_WINDOW != 0,
		MWType2:         a.device_cap_flags&(C.IBV_DEVICE_MEM_WINDOW_TYPE_2A|C.IBV_DEVICE_MEM_WINDOW_TYPE_2B) != 0,
		Atomics:         a.atomic_cap != C.IBV_ATOMIC_NONE,
		VendorID:        uint32(a.vendor_id),
		FirmwareVersion: C.GoString(&a.fw_ver[0]),
	}
	d.rxe = a.vendor_id == rxeVendor
	var p C.struct_ibv_port_attr
	if err := errnoOf(C.rb_query_port(d.ctx, port, &p)); err != nil {
		return fmt.Errorf("query port %d: %w", port, err)
	}
	if p.link_layer != C.IBV_LINK_LAYER_ETHERNET {
		return fmt.Errorf("port %d is not Ethernet: rocebed is about RoCEv2", port)
	}
	d.portAttr = verbs.PortAttr{
		Active:    p.state == C.IBV_PORT_ACTIVE,
		ActiveMTU: mtuBytes(p.active_mtu),
		MaxMTU:    mtuBytes(p.max_mtu),
		MaxMsg:    uint32(p.max_msg_sz),
	}
	return nil
}

// queryGIDs reads the whole table in one call; asking entry by entry costs a file each.
func (d *device) queryGIDs() ([]netip.Addr, error) {
	entries := make([]C.struct_ibv_gid_entry, 1024)
	n, err := C._ibv_query_gid_table(d.ctx, &entries[0], C.size_t(len(entries)), 0, C.sizeof_struct_ibv_gid_entry)
	if n < 0 {
		return nil, fmt.Errorf("query GID table: %w", errors.Join(err, errnoOf(C.int(-n))))
	}
	var gids []netip.Addr
	for _, e := range entries[:n] {
		if e.port_num != port || e.gid_type != C.IBV_GID_TYPE_ROCE_V2 {
			continue
		}
		for int(e.gid_index) >= len(gids) {
			gids = append(gids, netip.Addr{})
		}
		gids[e.gid_index] = netip.AddrFrom16(*(*[16]byte)(unsafe.Pointer(&e.gid)))
	}
	return gids, nil
}

func (d *device) Name() string                      { return d.name }
func (d *device) Loop() loop.Loop                   { return d.lp }
func (d *device) Attr() verbs.DeviceAttr            { return d.attr }
func (d *device) Port() verbs.PortAttr              { return d.portAttr }
func (d *device) GIDs() []verbs.GID                 { return slices.Clone(d.gids) }
func (d *device) OnAsync(fn func(verbs.AsyncEvent)) { d.onAsync = fn }

// Close implements verbs.Device.
func (d *device) Close(done func(error)) {
	if d.closed {
		d.lp.Post(func() { done(d.fail("close", errClosed)) })
		return
	}
	d.closed = true
	d.work.do(func() {
		err := d.shutdown()
		d.last = true
		d.lp.Post(func() { done(err) })
	})
}

var errClosed = errors.New("the device is closed")

func (d *device) shutdown() error {
	left := make([]object, 0, len(d.leftover))
	for o := range d.leftover {
		left = append(left, o)
	}
	slices.SortFunc(left, func(a, b object) int { return int(d.leftover[b]) - int(d.leftover[a]) })
	var errs []error
	for _, o := range left {
		errs = append(errs, o.destroy())
	}
	unwatch(d.sources)
	if err := d.free(); err != nil {
		errs = append(errs, d.fail("close", err))
	}
	return errors.Join(errs...)
}

// call runs a blocking call on the worker and hands its result to done on the loop.
func call[T any](d *device, blocking func() (T, error), done func(T, error)) {
	if d.closed {
		var none T
		d.lp.Post(func() { done(none, d.fail("call", errClosed)) })
		return
	}
	d.work.do(func() {
		v, err := blocking()
		d.lp.Post(func() { done(v, err) })
	})
}

// life says that an object may be used. The loop owns it.
type life struct {
	dead bool
}

// errDead is why a call on a destroyed object fails.
var errDead = errors.New("it is destroyed")

// kill destroys an object on the worker. It is dead at once, and alive again if that fails.
func (d *device) kill(o object, l *life, done func(error)) {
	if l.dead {
		if done != nil {
			d.lp.Post(func() { done(d.fail("destroy", errDead)) })
		}
		return
	}
	l.dead = true
	call(d, func() (struct{}, error) {
		err := o.destroy()
		if err == nil {
			delete(d.leftover, o)
		}
		return struct{}{}, err
	}, func(_ struct{}, err error) {
		l.dead = err == nil
		if done != nil {
			done(err)
		}
	})
}

// born remembers a new object. It runs on the worker.
func (d *device) born(o object) {
	d.order++
	d.leftover[o] = d.order
}

// enroll makes events find an object by its address; strike undoes it.
func (d *device) enroll(p unsafe.Pointer, element any) {
	d.mu.Lock()
	d.elements[p] = element
	d.mu.Unlock()
}

func (d *device) strike(p unsafe.Pointer) {
	d.mu.Lock()
	delete(d.elements, p)
	d.mu.Unlock()
}

func (d *device) fail(op string, err error) error {
	if err == nil {
		return nil
	}
	hint := ""
	switch {
	case errors.Is(err, syscall.ENOMEM):
		hint = " (out of device resources or locked memory: see ulimit -l and the device's limits)"
	case errors.Is(err, syscall.EBUSY):
		hint = " (something still uses it)"
	}
	return fmt.Errorf("%s: %s: %w%s", d.label(), op, err, hint)
}

func (d *device) label() string { return cmpOr(d.opt.Label, d.name) }

func (d *device) warn(format string, args ...any) {
	if d.opt.Warn != nil {
		d.opt.Warn(d.label() + ": " + fmt.Sprintf(format, args...))
	}
}

func errnoOf(e C.int) error {
	if e == 0 {
		return nil
	}
	return syscall.Errno(e)
}

func cmpOr(a, b string) string {
	if a == "" {
		return b
	}
	return a
}

func mtuBytes(m uint32) int { return 128 << m }
