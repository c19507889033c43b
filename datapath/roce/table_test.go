package roce

import (
	"math/bits"
	"strings"
	"testing"
)

func TestTheOpcodeTableFollowsFromTheNames(t *testing.T) {
	if n := len(known()); n != 25+12+2+1+7 {
		t.Errorf("%d opcodes are known", n)
	}
	for _, o := range known() {
		i := o.Info()
		name := strings.ToLower(i.Name)
		has := func(what string, flags Flags, words ...string) {
			t.Helper()
			want := false
			for _, w := range words {
				want = want || strings.Contains(name, w)
			}
			if i.Any(flags) != want {
				t.Errorf("%v: %s is %v, want %v", o, what, i.Any(flags), want)
			}
		}
		has("first", First, "first")
		has("middle", Middle, "middle")
		has("last", Last, "last")
		has("immediate", Immediate, "immediate")
		has("ImmDt", HasImmDt, "immediate", "selective")
		has("invalidate", HasIETH|Invalidate, "invalidate")
		has("DETH", HasDETH, "ud ")
		has("RETH", HasRETH, "write first", "write only", "sr rdma write", "read request", "flush", "atomic write")
		has("AETH", HasAETH, "response first", "response last", "response only", "acknowledge")
		has("AtomicETH", HasAtomicETH, "cmpswap", "fetchadd")
		has("AtomicAckETH", HasAtomicAckETH, "atomic acknowledge", "selective")
		has("payload", HasPayload, "send", "rdma write", "response", "atomic write")
		has("response", Response, "response", "acknowledge")
		if o != CNP {
			if n := bits.OnesCount32(uint32(i.Flags & (First | Middle | Last | Only))); n != 1 {
				t.Errorf("%v is %d of first, middle, last, only", o, n)
			}
			if i.Any(Request) == i.Any(Response) {
				t.Errorf("%v: a request %v, a response %v", o, i.Any(Request), i.Any(Response))
			}
		}
		if want := map[string]Transport{"RC": TransportRC, "UC": TransportUC, "UD": TransportUD, "CN": TransportCNP, "SR": TransportManufacturer}[i.Name[:2]]; i.Transport != want {
			t.Errorf("%v: transport %d, want %d", o, i.Transport, want)
		}
	}
}

func TestHeaderLengthsAreTheSpecifications(t *testing.T) {
	for o, want := range map[Opcode]uint8{
		RCSendFirst: 12, RCSendOnlyWithImmediate: 16, RCRDMAWriteFirst: 28, RCRDMAWriteOnlyWithImmediate: 32, RCRDMAReadRequest: 28,
		RCRDMAReadResponseMiddle: 12, RCRDMAReadResponseOnly: 16, RCAcknowledge: 16, RCAtomicAcknowledge: 24, RCCmpSwap: 40,
		RCSendLastWithInvalidate: 16, RCFlush: 32, RCAtomicWrite: 28, UCRDMAWriteOnlyWithImmediate: 32, UDSendOnly: 20,
		UDSendOnlyWithImmediate: 24, CNP: 28, 0xc5: 12, 0x15: 12,
	} {
		if got := o.Info().HeaderLen; got != want {
			t.Errorf("%v: %d bytes, want %d", o, got, want)
		}
	}
	if s := Opcode(0xc5).String(); s != "opcode 0xc5" || Opcode(0xc5).Transport() != TransportManufacturer || Opcode(0xe0).Transport() != TransportManufacturer {
		t.Errorf("a manufacturer's opcode is %s of transport %d", s, Opcode(0xc5).Transport())
	}
}

func TestSyndromesSayWhatTheyAre(t *testing.T) {
	for s, want := range map[Syndrome]string{
		ACK(31): "ACK credits 31", ACK(0): "ACK credits 0", RNRNAK(12): "RNR NAK timer 12", NAK(NAKPSNSequenceError): "NAK PSN sequence error",
		NAK(NAKRemoteAccessError): "NAK remote access error", NAK(NAKInvalidRDRequest): "NAK invalid RD request", NAK(9): "NAK reserved code 9", 0x40: "reserved syndrome 64",
	} {
		if s.String() != want {
			t.Errorf("%#x is %q, want %q", uint8(s), s, want)
		}
	}
	if ACK(31) != 0x1f || RNRNAK(12) != 0x2c || NAK(NAKRemoteOperationalError) != 0x63 {
		t.Errorf("ACK %#x, RNR NAK %#x, NAK %#x", uint8(ACK(31)), uint8(RNRNAK(12)), uint8(NAK(NAKRemoteOperationalError)))
	}
}

func TestCreditCodesFollowTheTable(t *testing.T) {
	want := []uint32{0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768}
	for code, n := range want {
		if got, limited := Credits(uint8(code)); got != n || !limited {
			t.Errorf("code %d is %d credits (limited %v), want %d", code, got, limited, n)
		}
		if got := CreditsFor(n); got != uint8(code) {
			t.Errorf("%d credits are code %d, want %d", n, got, code)
		}
	}
	if _, limited := Credits(CreditsInvalid); limited || CreditsFor(5) != 4 || CreditsFor(1<<31) != 30 {
		t.Errorf("code 31 limits: %v; 5 is code %d, 2^31 is code %d", limited, CreditsFor(5), CreditsFor(1<<31))
	}
}
