package verbs

import (
	"strings"
	"testing"
	"time"
)

func TestRNRDelaysGrowFromCodeOneOnAndCodeZeroIsTheLongest(t *testing.T) {
	for i := 2; i < 32; i++ {
		if RNRDelay[i] <= RNRDelay[i-1] {
			t.Errorf("delay %d is %v, the one before it %v", i, RNRDelay[i], RNRDelay[i-1])
		}
	}
	if RNRDelay[0] <= RNRDelay[31] || RNRDelay[1] != 10*time.Microsecond || RNRDelay[0] != 655360*time.Microsecond {
		t.Errorf("ends of the table: %v, %v, %v", RNRDelay[0], RNRDelay[1], RNRDelay[31])
	}
}

func TestRNRTimerForIsTheShortestDelayThatIsEnough(t *testing.T) {
	for d := time.Duration(0); d < 700*time.Millisecond; d += 3333 * time.Nanosecond {
		code, exact, enough := RNRTimerFor(d)
		if enough != (d <= RNRDelay[0]) || exact != (RNRDelay[code] == d) {
			t.Fatalf("%v: code %d, exact %v, enough %v", d, code, exact, enough)
		}
		for _, other := range RNRDelay {
			if other >= d && other < RNRDelay[code] {
				t.Fatalf("%v: got %v, but %v is enough", d, RNRDelay[code], other)
			}
		}
	}
	for code := range uint8(32) {
		if got, exact, _ := RNRTimerFor(RNRDelay[code]); got != code || !exact {
			t.Errorf("delay %d comes back as %d", code, got)
		}
	}
}

func TestTimeoutForIsTheSmallestExponentThatIsEnough(t *testing.T) {
	for n := uint8(2); n < 31; n++ {
		if TimeoutFor(AckTimeout(n)) != n || TimeoutFor(AckTimeout(n)+1) != n+1 {
			t.Errorf("exponent %d: %d and %d", n, TimeoutFor(AckTimeout(n)), TimeoutFor(AckTimeout(n)+1))
		}
	}
	if AckTimeout(0) != 0 || TimeoutFor(0) != 0 || AckTimeout(14) != 67108864 || TimeoutFor(1<<62) != 31 {
		t.Error("ends of the range")
	}
}

// Every value of an enumeration has a name of its own, and what is beyond it says so.
func TestEnumerationsHaveNames(t *testing.T) {
	check := func(kind string, n int, str func(uint8) string) {
		seen := map[string]bool{}
		for v := range uint8(n) {
			s := str(v)
			if s == "" || strings.Contains(s, "(") || seen[s] {
				t.Errorf("%s %d is written %q", kind, v, s)
			}
			seen[s] = true
		}
		if s := str(uint8(n)); !strings.HasPrefix(s, kind+"(") {
			t.Errorf("%s %d, which there is not, is written %q", kind, n, s)
		}
	}
	check("QPType", 3, func(v uint8) string { return QPType(v).String() })
	check("QPState", 7, func(v uint8) string { return QPState(v).String() })
	check("Opcode", int(OpLocalInv)+1, func(v uint8) string { return Opcode(v).String() })
	check("WCOpcode", int(WCRecvRDMAWithImm)+1, func(v uint8) string { return WCOpcode(v).String() })
	check("Status", int(GeneralErr)+1, func(v uint8) string { return Status(v).String() })
	check("AsyncEventType", int(EventGIDChange)+1, func(v uint8) string { return AsyncEventType(v).String() })
	check("MemoryKind", 2, func(v uint8) string { return MemoryKind(v).String() })
}

func TestFlagsAreWrittenByName(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{(LocalWrite | RemoteAtomic).String(), "LOCAL_WRITE|REMOTE_ATOMIC"},
		{Access(0).String(), "0"},
		{(ZeroBased | 1<<9).String(), "ZERO_BASED|0x200"},
		{(Signaled | Inline).String(), "SIGNALED|INLINE"},
		{(WithImm | WithGRH).String(), "WITH_IMM|GRH"},
		{(MaskState | MaskDestQPN | MaskSQDAsyncNotify).String(), "STATE|DEST_QPN|EN_SQD_ASYNC_NOTIFY"},
	} {
		if c.got != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
}
