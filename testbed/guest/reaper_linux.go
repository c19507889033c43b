package guest

import (
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// reaper is the only one in the guest that waits for processes: init gets every orphan,
// and two waiters would steal from each other. What it started gets its status; the
// rest is only buried.
type reaper struct {
	mu      sync.Mutex
	waiting map[int]chan<- syscall.WaitStatus
}

func newReaper() *reaper {
	r := &reaper{waiting: map[int]chan<- syscall.WaitStatus{}}
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGCHLD)
	go func() {
		for range ended {
			r.bury()
		}
	}()
	return r
}

// start starts a program; its wait status comes on the channel.
func (r *reaper) start(path string, argv []string, attr *syscall.ProcAttr) (int, <-chan syscall.WaitStatus, error) {
	// Under the lock: a process must not be buried before it is known.
	r.mu.Lock()
	defer r.mu.Unlock()
	pid, err := syscall.ForkExec(path, argv, attr)
	if err != nil {
		return 0, nil, err
	}
	status := make(chan syscall.WaitStatus, 1)
	r.waiting[pid] = status
	return pid, status, nil
}

// bury waits for all that have ended: one signal may stand for many.
func (r *reaper) bury() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for {
		var ws syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &ws, syscall.WNOHANG, nil)
		if err == syscall.EINTR {
			continue
		}
		if err != nil || pid <= 0 {
			return
		}
		if status, ok := r.waiting[pid]; ok {
			delete(r.waiting, pid)
			status <- ws
		}
	}
}
