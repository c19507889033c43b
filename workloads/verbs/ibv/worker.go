//go:build ibv && linux && cgo

package ibv

import "sync"

// worker runs blocking calls one after the other, off the loop.
type worker struct {
	mu    sync.Mutex
	jobs  []func()
	ready *sync.Cond
}

func newWorker() *worker {
	w := &worker{}
	w.ready = sync.NewCond(&w.mu)
	return w
}

func (w *worker) do(job func()) {
	w.mu.Lock()
	w.jobs = append(w.jobs, job)
	w.mu.Unlock()
	w.ready.Signal()
}

// run takes jobs until one says that it was the last.
func (w *worker) run(last *bool) {
	for !*last {
		w.mu.Lock()
		for len(w.jobs) == 0 {
			w.ready.Wait()
		}
		batch := w.jobs
		w.jobs = nil
		w.mu.Unlock()
		for _, job := range batch {
			job()
		}
	}
}
