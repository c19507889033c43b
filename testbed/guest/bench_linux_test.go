package guest

import (
	"io"
	"testing"
)

// BenchmarkBoot is from nothing to the end of the first program in the guest.
func BenchmarkBoot(b *testing.B) {
	for b.Loop() {
		g, err := Boot(b.Context(), Config{})
		if err != nil {
			b.Fatal(err)
		}
		if code, err := g.Run(b.Context(), Cmd{Argv: []string{"true"}}); code != 0 || err != nil {
			b.Fatal(code, err)
		}
		g.Close()
	}
}

// BenchmarkRun is one program, started and ended, in a guest that is there.
func BenchmarkRun(b *testing.B) {
	g, err := Boot(b.Context(), Config{})
	if err != nil {
		b.Fatal(err)
	}
	defer g.Close()
	for b.Loop() {
		if code, err := g.Run(b.Context(), Cmd{Argv: []string{"true"}}); code != 0 || err != nil {
			b.Fatal(code, err)
		}
	}
}

// BenchmarkOutput is how fast bytes come out of a guest.
func BenchmarkOutput(b *testing.B) {
	const size = 16 << 20
	g, err := Boot(b.Context(), Config{})
	if err != nil {
		b.Fatal(err)
	}
	defer g.Close()
	b.SetBytes(size)
	for b.Loop() {
		if code, err := g.Run(b.Context(), Cmd{Argv: []string{"head", "-c", "16777216", "/dev/zero"}, Stdout: io.Discard}); code != 0 || err != nil {
			b.Fatal(code, err)
		}
	}
}
