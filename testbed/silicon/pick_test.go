package silicon

import (
	"testing"

	"github.com/rocebed/rocebed/datapath/roce"
	"github.com/rocebed/rocebed/faults/packet"
)

func pickOn(t *testing.T, w *Wire, events ...packet.Event) {
	t.Helper()
	p, err := packet.Compile(events, 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Pick("it", p, nil, roce.MAC{}, roce.MAC{}); err != nil {
		t.Fatal(err)
	}
}

func do(a ...packet.Action) packet.Do { return a }

func TestATruncatedFrameIsTheBeginningOfTheWholeOneInBothForms(t *testing.T) {
	for _, form := range []string{"struct", "bytes"} {
		f := &far{}
		w, p := wireTo(f)
		pickOn(t, w, packet.Event{Do: do(packet.Action{Verb: packet.Truncate, N: 70})})
		payload := make([]byte, 100)
		whole, err := AppendFrame(nil, aPacket(p, payload), roce.MAC{}, roce.MAC{})
		if err != nil {
			t.Fatal(err)
		}
		if form == "bytes" {
			w.Send(asBytes(t, p, payload), 0)
		} else {
			w.Send(aPacket(p, payload), 0)
		}
		got := f.frames[0]
		if string(got.Bytes) != string(whole[:70]) || got.Len != 70 || got.Kind >= roce.KindRoCE || w.picks("it").hits != 1 {
			t.Errorf("%s: %d bytes of kind %v, %d hits", form, got.Len, got.Kind, w.picks("it").hits)
		}
	}
}

func TestWhatIsHeldWhenAFaultHealsGoesOnAtOnce(t *testing.T) {
	f := &far{}
	w, p := wireTo(f)
	pickOn(t, w, packet.Event{Match: packet.Match{Ordinal: packet.Set{{From: 1, To: 1}}}, Do: do(packet.Action{Verb: packet.Hold, N: 100})})
	w.Send(aPacket(p, nil), 0)
	w.Send(aPacket(p, nil), 5)
	if len(f.frames) != 1 {
		t.Fatalf("%d frames went on", len(f.frames))
	}
	w.Unpick("it")
	if len(f.frames) != 2 || w.picks("it") != nil {
		t.Errorf("%d frames went on when it healed", len(f.frames))
	}
	w.Send(aPacket(p, nil), 9)
	if len(f.frames) != 3 {
		t.Error("the wire is not as before")
	}
}

func TestAPacketThatIsDroppedByAnEventIsSeenByNoImpairment(t *testing.T) {
	f := &far{}
	w, p := wireTo(f)
	pickOn(t, w, packet.Event{Match: packet.Match{Every: 2}, Do: do(packet.Action{Verb: packet.Drop})})
	if err := w.Add(Impairment{ID: "all", Model: RandomLoss{1}}); err != nil {
		t.Fatal(err)
	}
	for range 10 {
		w.Send(aPacket(p, nil), 0)
	}
	if _, seen, hits, _ := w.Find("all"); seen != 5 || hits != 5 || w.picks("it").hits != 5 || len(f.frames) != 0 {
		t.Errorf("the event hit %d, the impairment saw %d", w.picks("it").hits, seen)
	}
}
