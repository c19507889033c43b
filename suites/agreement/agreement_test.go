package agreement

import (
	"math"
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/rocebed/rocebed/internal/testleak"
	"github.com/rocebed/rocebed/suites/bed"
	"github.com/rocebed/rocebed/testbed"
)

func TestMain(m *testing.M) {
	testbed.ProcessIfAsked()
	testleak.Main(m)
}

func TestAgreement(t *testing.T) { bed.Suite(t, "agreement") }

// dilation is what a guest without hardware virtualisation sustains, where it has its processors to itself.
func dilation() uint32 {
	if bed.Backend() == testbed.Kernel {
		return 1024
	}
	return 256
}

// The short form of the table: `make agreement` measures all of it.
var _ = Describe("a short incast 4:1", Ordered, ContinueOnFailure, bed.Tries(), func() {
	scene := incast(4)
	seen := map[Mode]*Figures{}
	for _, mode := range []Mode{Both, Neither} {
		It("comes to the yardstick's figures with "+string(mode), func(ctx SpecContext) {
			how := How{Dilation: dilation(), Again: 2, Seed: 1, Span: Short}
			got, err := scene.Measure(ctx, bed.Backend(), mode, how)
			Expect(err).NotTo(HaveOccurred())
			Expect(got.Problems).To(BeEmpty())
			how.Dilation = got.Dilation
			yardstick, err := scene.Measure(ctx, Yardstick, mode, how)
			Expect(err).NotTo(HaveOccurred())
			seen[mode] = got
			AddReportEntry("figures", (&Table{Rows: []Row{{Figures: yardstick}, {Figures: got}}}).Markdown(), ReportEntryVisibilityFailureOrVerbose)
			for _, c := range Compare(yardstick, got) {
				// A seventh of the table's span has √7 of its spread; what its tolerances allow for that is all but a tenth or so.
				Expect(c.Held || math.Abs(c.Off) <= 2*c.Most).To(BeTrue(), c.String()+" (twice that in the short form)")
			}
		})
	}
	It("drops and sends again without either, and loses nothing with both", func() {
		for _, c := range Claims(seen) {
			Expect(c.Held).To(BeTrue(), "%s: %s", c.Text, c.Saw)
		}
	})
})

func TestWhatWasMeasuredAgainTakesItsRowsPlaceInAPage(t *testing.T) {
	head := "| scene | with | backend | x |\n| --- | --- | --- | --- |\n"
	page := head + "| late | both | sim | 1 |\n| late | neither | sim | 2 |\n| late | neither | kernel, 1:512 | 3 |\n"
	got := MergeFigures(page, head+"| late | neither | kernel, 1:1024 | 30 |\n| late | neither | sim, mean of 8 | 20 |\n| more | neither | sim | 4 |\n")
	want := head + "| late | both | sim | 1 |\n| late | neither | sim, mean of 8 | 20 |\n| late | neither | kernel, 1:1024 | 30 |\n| more | neither | sim | 4 |\n"
	if got != want {
		t.Errorf("figures merge to\n%s", got)
	}
	head = "| scene | | sim |\n| --- | --- | --- |\n"
	got = MergeClaims(head+"| late | with both, a | 1 |\n| late | with both, b | 2 |\n", head+"| late | with both, b | 20 |\n")
	if want = head + "| late | with both, a | 1 |\n| late | with both, b | 20 |\n"; got != want {
		t.Errorf("claims merge to\n%s", got)
	}
}

func TestTheYardstickIsAMeanWherePacketsAreDropped(t *testing.T) {
	scene := incast(2)
	how := How{Dilation: 1, Seed: 1, Span: Short}
	var sum float64
	for i := range seeds {
		f, err := scene.measure(t.Context(), Yardstick, Neither, How{Dilation: 1, Seed: uint64(1 + i), Span: Short})
		if err != nil {
			t.Fatal(err)
		}
		sum += f.sum()
	}
	f, err := scene.Measure(t.Context(), Yardstick, Neither, how)
	if err != nil {
		t.Fatal(err)
	}
	if want := sum / seeds; f.Runs != seeds || math.Abs(f.sum()-want) > 1e-6*want {
		t.Errorf("%.4g b/s are the mean of %d runs, and the runs' mean is %.4g of %d", f.sum(), f.Runs, want, seeds)
	}
}

func TestFiguresOutsideTheirToleranceAreNamed(t *testing.T) {
	y := &Figures{Scene: "incast 2:1", Mode: PFC, Backend: testbed.Sim, Goodput: []float64{4.9e9, 4.9e9}, Jain: 1, Mean: 218e3, P99: 220e3, Pauses: 800, Paused: 40e6}
	same := *y
	same.Backend = testbed.Soft
	if m := NewTable([]*Figures{y, &same}).Misses(); len(m) != 0 {
		t.Errorf("the yardstick's own figures miss %q", m)
	}
	for metric, spoil := range map[string]func(*Figures){
		"goodput, all":  func(f *Figures) { f.Goodput = []float64{4.3e9, 4.3e9} },
		"goodput, each": func(f *Figures) { f.Goodput = []float64{4.1e9, 5.7e9} },
		"Jain":          func(f *Figures) { f.Jain = 0.94 },
		"queue, mean":   func(f *Figures) { f.Mean = 180e3 },
		"queue, p99":    func(f *Figures) { f.P99 = 260e3 },
		"pause frames":  func(f *Figures) { f.Pauses = 370 },
		"time paused":   func(f *Figures) { f.Paused = 49e6 },
		"retransmiss":   func(f *Figures) { f.Retries = 1 },
	} {
		f := same
		spoil(&f)
		missed := ""
		for _, c := range Compare(y, &f) {
			if !c.Held {
				missed += c.Metric + "; "
			}
		}
		if !strings.HasPrefix(missed, metric) || strings.Count(missed, ";") > 2 {
			t.Errorf("%s is off, and what is said to be is %q", metric, missed)
		}
	}
}
