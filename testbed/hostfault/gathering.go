package hostfault

import "errors"

// gathering waits for answers, all on one loop, and hands on their errors when all are in.
type gathering struct {
	left int
	errs []error
	done func(error)
}

func gather(done func(error)) *gathering { return &gathering{left: 1, done: done} }

// ask gives what one answer, which may come at once, is to be told to.
func (g *gathering) ask() (answer func(error)) {
	g.left++
	return g.answer
}

// asked says that no more answers are asked for.
func (g *gathering) asked() { g.answer(nil) }

func (g *gathering) answer(err error) {
	g.errs = append(g.errs, err)
	if g.left--; g.left == 0 {
		g.done(errors.Join(g.errs...))
	}
}
