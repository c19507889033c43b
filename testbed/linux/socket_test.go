//go:build linux

package linux

import (
	"errors"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rocebed/rocebed/internal/testneed"
)

// askForLoopback appends n requests that are answered with what the loopback interface is.
func askForLoopback(b *batch, n int) {
	for range n {
		b.begin(unix.RTM_GETLINK, 0, func() string { return "ask for lo" })
		b.link(1, 0, 0)
		b.end()
	}
}

func TestAsManyAnswersAsThereAreQuestionsComeHoweverMany(t *testing.T) {
	testneed.Root(t)
	s, err := openRouteSocket()
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	const questions = 3000 // a switch with as many ports
	var b batch
	askForLoopback(&b, questions)
	answers := 0
	if err := s.query(&b, func(uint16, []byte) { answers++ }); err != nil || answers != questions {
		t.Errorf("%d answers to %d questions, error %v", answers, questions, err)
	}
}

func TestAnswersThatWereLostAreAnErrorAndTheNextRequestIsWhole(t *testing.T) {
	testneed.Root(t)
	s, err := openRouteSocket()
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	if err := unix.SetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_RCVBUF, 1); err != nil { // the least there is
		t.Fatal(err)
	}
	var b batch
	askForLoopback(&b, 100)
	if err := s.query(&b, func(uint16, []byte) {}); !errors.Is(err, unix.ENOBUFS) && !errors.Is(err, unix.EAGAIN) || !strings.Contains(err.Error(), "replies") {
		t.Fatalf("100 answers in a buffer for one: %v", err)
	}
	answers := 0
	askForLoopback(&b, 1)
	if err := unix.SetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, receiveBuffer); err != nil {
		t.Fatal(err)
	}
	if err := s.query(&b, func(uint16, []byte) { answers++ }); err != nil || answers != 1 {
		t.Errorf("%d answers to one question, error %v", answers, err)
	}
}
