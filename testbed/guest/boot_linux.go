package guest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"time"

	"github.com/rocebed/rocebed/images"
	"golang.org/x/crypto/ssh"
	"golang.org/x/sys/unix"
)

const (
	defaultMemoryMB = 1024
	// kvmPatience is how long KVM may take to hello before TCG is taken instead. Where
	// KVM works, hello comes in well under 2 s.
	kvmPatience = 6 * time.Second
	// tcgBoots is how often a boot under TCG is tried: about one in a hundred panics
	// before init, in the kernel's patching of its own text.
	tcgBoots = 3
)

// Boot boots a guest and returns when it is ready to run programs. ctx bounds the boot
// alone, not the guest's life; end that with Close.
func Boot(ctx context.Context, cfg Config) (*Guest, error) {
	began, mark := time.Now(), markTSC()
	qemu, err := findQEMU()
	if err != nil {
		return nil, err
	}
	if err := cfg.settle(ctx); err != nil {
		return nil, err
	}
	k, err := newKeys()
	if err != nil {
		return nil, err
	}
	initrd, err := initramfs(ctx, &cfg, cfg.Image, k)
	if err != nil {
		return nil, err
	}
	defer initrd.Close()
	st, err := initrd.Stat()
	if err != nil {
		return nil, err
	}
	// The archive lies in the guest's memory twice while it is unpacked. The image's own
	// share of that is part of what a guest of a given size is known to need.
	extra := int((st.Size() - cfg.Image.Manifest.Base.Size) >> 20)
	s := shape{qemu: qemu, memoryMB: cfg.MemoryMB + 2*extra, cpus: cfg.CPUs, kernel: cfg.Image.KernelPath(), initrd: initrd, console: cfg.Console}
	memory := accelMemory{dir: cfg.CacheDir, key: accelKey(qemu, cfg.Image)}
	var failed []Attempt
	for _, try := range attempts(&cfg, memory) {
		s.accel, s.tscKHz = try.accel, 0
		if try.accel == "tcg" {
			s.tscKHz = tscSince(mark)
			if cfg.tscKHz != nil {
				s.tscKHz = cfg.tscKHz(len(failed), s.tscKHz)
			}
		}
		cfg.progress("booting the guest under %s", try.accel)
		start := time.Now()
		g, err := bootOnce(ctx, s, k, try.patience)
		if ctx.Err() != nil {
			if g != nil {
				g.Close()
			}
			return nil, fmt.Errorf("boot guest: %w", ctx.Err())
		}
		if err == nil {
			g.Report.Accel, g.Report.MemoryMB, g.Report.CPUs, g.Report.TSCKHz = try.accel, s.memoryMB, s.cpus, s.tscKHz
			g.Report.Boot, g.Report.Total, g.Report.Failed = time.Since(start), time.Since(began), failed
			if try.remember {
				memory.store(try.accel, "")
			}
			watching, stop := context.WithCancel(context.Background())
			g.stop = stop
			g.watch(watching, cfg.HangAfter)
			return g, nil
		}
		var f *Failure
		if !errors.As(err, &f) {
			return nil, fmt.Errorf("boot guest: %w", err)
		}
		failed = append(failed, Attempt{Accel: try.accel, Lasted: time.Since(start), Reason: err.Error()})
		cfg.progress("the guest did not come up under %s after %.1f s (%v)", try.accel, time.Since(start).Seconds(), f.Detail)
		if try.remember {
			memory.store("tcg", f.Detail)
		}
	}
	last := failed[len(failed)-1]
	detail := fmt.Sprintf("tried %d times, the last under %s for %.1f s: %s", len(failed), last.Accel, last.Lasted.Seconds(), last.Reason)
	if err := cfg.Image.Verify(); err != nil { // not before every boot: it reads the image whole
		detail = fmt.Sprintf("the image is damaged: %v; %s", err, detail)
	}
	return nil, &Failure{Kind: ErrBoot, Detail: detail}
}

func (c *Config) progress(format string, args ...any) {
	if c.Progress != nil {
		c.Progress(fmt.Sprintf(format, args...))
	}
}

// settle fills in what the configuration leaves open.
func (c *Config) settle(ctx context.Context) error {
	if err := c.settleBinary(); err != nil {
		return fmt.Errorf("boot guest: its init: %w", err)
	}
	if c.MemoryMB == 0 {
		c.MemoryMB = defaultMemoryMB
	}
	if err := fits(c.MemoryMB); err != nil {
		return err
	}
	if c.CPUs == 0 {
		c.CPUs = min(max(runtime.NumCPU(), 2), 4)
	}
	if c.BootTimeout == 0 {
		c.BootTimeout = 90 * time.Second
	}
	if c.HangAfter == 0 {
		c.HangAfter = 45 * time.Second
	}
	if c.Accel == "" {
		c.Accel = os.Getenv("ROCEBED_GUEST_ACCEL")
	}
	if c.Accel != "" && c.Accel != "kvm" && c.Accel != "tcg" {
		return fmt.Errorf("boot guest: accelerator %q: want kvm or tcg", c.Accel)
	}
	if c.CacheDir == "" {
		dir, err := images.DefaultCacheDir()
		if err != nil {
			return err
		}
		c.CacheDir = dir
	}
	if c.Image == nil {
		img, err := images.Build(ctx, images.Options{CacheDir: c.CacheDir, Progress: c.Progress})
		if err != nil {
			return unavailable("%w", err)
		}
		c.Image = img
	}
	return nil
}

// fits refuses a guest that the machine has not the memory for: it would come up, and be killed
// once it uses what it was promised.
func fits(mb int) error {
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return nil // nothing is known against it
	}
	if has := int(uint64(info.Totalram) * uint64(info.Unit) >> 20); mb > has {
		return unavailable("the guest needs %d MiB of memory, this machine has %d: a smaller topology, or workloads with fewer queue pairs, a smaller size or depth, need less", mb, has)
	}
	return nil
}

// bootOnce starts QEMU and waits for the guest's hello. A Failure means that another
// attempt makes sense.
func bootOnce(ctx context.Context, s shape, k *keys, patience time.Duration) (*Guest, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	vm, err := s.start()
	if err != nil {
		return nil, err
	}
	type result struct {
		conn  ssh.Conn
		hello hello
		clock *clockWatch
		went  Clock
		err   error
	}
	came := make(chan result, 1)
	go func() {
		var r result
		r.conn, r.hello, r.clock, r.went, r.err = greet(vm.port, k)
		came <- r
	}()
	var r result
	select {
	case r = <-came:
	case <-ctx.Done():
		r.err = vm.fail(ErrBoot, fmt.Sprintf("no hello within %v", patience))
	case <-vm.exited:
		r.err = vm.failure()
	}
	var off *clockError
	if errors.As(r.err, &off) {
		r.err = vm.fail(ErrClock, off.what)
	} else if r.err == nil && r.hello.Error != "" {
		r.err = fmt.Errorf("its init failed: %s", r.hello.Error)
	} else if r.err != nil && !errors.As(r.err, new(*Failure)) {
		// The port closes a moment before QEMU's end can say why.
		if vm.waitExit(lastWords) {
			r.err = vm.failure()
		} else {
			r.err = vm.fail(ErrBoot, r.err.Error())
		}
	}
	if r.err != nil {
		vm.kill()
		<-vm.exited
		return nil, r.err
	}
	return &Guest{conn: r.conn, vm: vm, clock: r.clock, failing: make(chan struct{}),
		Report: Report{Kernel: r.hello.Kernel, Steps: r.hello.Steps, Clock: r.went}}, nil
}

// greet opens the SSH connection, asks for the guest's hello and compares its clock with the
// machine's.
func greet(port net.Conn, k *keys) (_ ssh.Conn, h hello, clock *clockWatch, went Clock, err error) {
	clock = newClockWatch()
	conn, channels, requests, err := ssh.NewClientConn(port, "guest", &ssh.ClientConfig{
		User:              "root",
		Auth:              []ssh.AuthMethod{ssh.PublicKeys(k.client)},
		HostKeyCallback:   ssh.FixedHostKey(k.host),
		HostKeyAlgorithms: []string{ssh.KeyAlgoED25519},
		Config:            transport,
	})
	if err != nil {
		return nil, h, nil, went, err
	}
	go ssh.DiscardRequests(requests)
	go func() {
		for c := range channels {
			_ = c.Reject(ssh.Prohibited, "the machine offers nothing")
		}
	}()
	// The time until the guest is ready is time to compare clocks in.
	early, err := clock.read(conn)
	if err == nil {
		err = ask(conn, reqHello, &h)
	}
	if err == nil {
		went, err = clock.settle(conn, early)
	}
	if err != nil {
		conn.Close()
		return nil, h, nil, went, err
	}
	return conn, h, clock, went, nil
}
