package loop

import "testing"

func TestAGoroutineIsToldFromOthersHoweverDeepItIs(t *testing.T) {
	mine := goroutine()
	theirs := make(chan uintptr)
	more := make(chan struct{})
	for range 3 {
		go func() {
			theirs <- goroutine()
			<-more
		}()
	}
	seen := map[uintptr]bool{mine: true}
	for range 3 {
		seen[<-theirs] = true
	}
	if len(seen) != 4 {
		t.Errorf("four goroutines at once, %d told apart", len(seen))
	}
	close(more)
	var deep func(n int) uintptr
	deep = func(n int) uintptr {
		var room [1 << 10]byte
		if n == 0 {
			return goroutine()
		}
		room[n] = byte(n)
		return deep(n-1) + uintptr(room[0])
	}
	if got := deep(500); got != mine {
		t.Error("a goroutine is another one once its stack has grown")
	}
}
