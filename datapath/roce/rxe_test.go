package roce

import (
	"bytes"
	"errors"
	"io"
	"os"
	"testing"

	"github.com/google/gopacket/pcapgo"
)

// testdata/rxe.pcapng is a packet of each sort that Linux's rxe sent in our own conformance suite. The
// suite compares all that it makes rxe send, each time it runs; this is how the file is remade:
//
//	make build
//	go test -c -tags ibv -o bin/ ./suites/conformance
//	bin/rocebed shell --guest --mem 2048 --ship bin/conformance.test -- bash -c 'cd /x
//	  ROCEBED_TESTS_MUST_RUN=1 ROCEBED_KEEP_PACKETS=/tmp/kept ./conformance.test -ginkgo.focus "at wall time|over IPv6" >&2
//	  cat /tmp/kept' > datapath/roce/testdata/rxe.pcapng
const rxeCapture = "testdata/rxe.pcapng"

func rxeFrames(t *testing.T) (frames [][]byte) {
	t.Helper()
	b, err := os.ReadFile(rxeCapture)
	if err != nil {
		t.Fatal(err)
	}
	r, err := pcapgo.NewNgReader(bytes.NewReader(b), pcapgo.DefaultNgReaderOptions)
	if err != nil {
		t.Fatal(err)
	}
	for {
		data, info, err := r.ReadPacketData()
		if errors.Is(err, io.EOF) {
			return frames
		}
		if err != nil || info.Length != len(data) {
			t.Fatalf("packet %d: %d bytes of %d: %v", len(frames)+1, len(data), info.Length, err)
		}
		frames = append(frames, data)
	}
}

func TestPacketsOfRxeAreTheSameBytesEncodedAgain(t *testing.T) {
	sent := map[bool]map[Opcode]bool{false: {}, true: {}}
	syndromes := map[Syndrome]bool{}
	for i, frame := range rxeFrames(t) {
		v, p := decode(t, frame)
		if !v.ICRCOK() || !v.IPv4OK() {
			t.Errorf("packet %d, %v: ICRC right %v, IPv4 checksum right %v", i+1, v.Opcode(), v.ICRCOK(), v.IPv4OK())
		}
		if again := mustAppend(t, &p); !bytes.Equal(again, frame) {
			t.Errorf("packet %d, %v\nrxe sent      %x\nencoded again %x", i+1, v.Opcode(), frame, again)
		}
		sent[v.IsIPv6()][v.Opcode()] = true
		if v.Info().Any(HasAETH) {
			syndromes[v.AETH().Syndrome] = true
		}
	}
	for _, o := range known() {
		// rxe makes no CNP and nothing of ours, and libibverbs' older calls neither of annex A19's.
		if !foreign(o) && !sent[false][o] {
			t.Errorf("the capture has no %v over IPv4", o)
		}
		if tr := o.Transport(); (tr == TransportUC || tr == TransportUD) && !sent[true][o] {
			t.Errorf("the capture has no %v over IPv6", o)
		}
	}
	for _, s := range []Syndrome{ACK(CreditsInvalid), NAK(NAKPSNSequenceError), NAK(NAKInvalidRequest), NAK(NAKRemoteAccessError), NAK(NAKRemoteOperationalError), RNRNAK(12)} {
		if !syndromes[s] {
			t.Errorf("the capture has no %v", s)
		}
	}
}

// The ICRC of a packet of rxe's covers each bit that no switch may change, and no other.
func TestEachBitIsEitherCoveredByTheICRCOrMasked(t *testing.T) {
	for i, frame := range rxeFrames(t) {
		if len(frame) > 200 {
			continue
		}
		var v View
		if err := v.Parse(frame); err != nil {
			t.Fatal(err)
		}
		n := int(v.l4 - v.l3)
		free := map[int]byte{n + 6: 0xff, n + 7: 0xff, n + UDPLen + 4: 0xff} // UDP checksum; the byte with FECN and BECN
		if v.IsIPv6() {
			free[0], free[1], free[2], free[3], free[7] = 0x0f, 0xff, 0xff, 0xff, 0xff
		} else {
			free[1], free[8], free[10], free[11] = 0xff, 0xff, 0xff, 0xff
		}
		ip := v.IP()
		covered := len(ip) - ICRCLen
		for k := range covered * 8 {
			at, mask := k/8, byte(1)<<(k%8)
			if at == 0 && mask > 0x0f { // another version is another layout
				continue
			}
			ip[at] ^= mask
			if same := ICRC(ip[:covered], n) == v.ICRC(); same != (free[at]&mask != 0) {
				t.Errorf("packet %d, %v: bit %#x of byte %d of the IP packet changed, and the ICRC is still right: %v", i+1, v.Opcode(), mask, at, same)
			}
			ip[at] ^= mask
		}
	}
}
