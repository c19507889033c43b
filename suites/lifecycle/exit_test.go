//go:build linux

package lifecycle_test

import (
	"encoding/json"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/rocebed/rocebed/suites/cli"
)

var _ = Describe("rocebed run", func() {
	var m *cli.Machine
	BeforeEach(func() { m = cli.NewMachine() })

	It("exits 0 when all that was expected came, and prints one JSON object that says what came", func(ctx SpecContext) {
		m.File(file, scenario)
		d := m.MustRun(ctx, "run", "--allow-slow", "--json", "--seed", "77", "--out", "rec", file)
		var got struct {
			Verdict, Backend, Record, Hash string
			Guest                          *bool
			Seed                           uint64
			Dilation                       uint32
			Workloads                      []struct {
				Bytes    int64 `json:"bytes"`
				Goodput  int64 `json:"goodput_bps"`
				Verified int64 `json:"verified_bytes"`
			}
			Faults []struct {
				Kind   string
				Hits   *int64
				Healed bool
			}
		}
		Expect(json.Unmarshal([]byte(d.Stdout), &got)).To(Succeed(), "%s", d)
		Expect(got.Verdict).To(Equal("pass"))
		Expect(got.Backend).To(Equal("kernel"))
		Expect(got.Guest).To(HaveValue(BeFalse()))
		Expect(got.Seed).To(BeEquivalentTo(77))
		Expect(got.Dilation).To(BeEquivalentTo(256))
		Expect(got.Record).To(HaveSuffix("rec"))
		Expect(got.Hash).To(MatchRegexp("^[0-9a-f]{64}$"))
		Expect(got.Workloads).To(HaveLen(1))
		// 4 hosts write 8 messages of 16 KiB to each of the 3 others.
		const all = 4 * 3 * 8 * 16 << 10
		Expect(got.Workloads[0].Bytes).To(BeEquivalentTo(all))
		Expect(got.Workloads[0].Verified).To(BeEquivalentTo(all))
		Expect(got.Workloads[0].Goodput).To(BeNumerically(">", 0))
		Expect(got.Faults).To(HaveLen(1))
		Expect(got.Faults[0].Kind).To(Equal("loss"))
		Expect(got.Faults[0].Hits).NotTo(BeNil())
		Expect(got.Faults[0].Healed).To(BeTrue())
	}, SpecTimeout(2*time.Minute))

	It("exits 1 when an expectation is not met, and prints the values that it saw", func(ctx SpecContext) {
		m.File(file, strings.Replace(scenario, "errors == 0", "errors > 0", 1))
		d := m.Run(ctx, "run", file)
		Expect(d.Code).To(Equal(1), "%s", d)
		Expect(d.Stdout).To(ContainSubstring(`workloads["w"].errors = 0`))
		expectNothingLeft(m)
	}, SpecTimeout(2*time.Minute))

	It("exits 2 when a key is misspelt, names the place and what was meant, and makes nothing", func(ctx SpecContext) {
		m.File(file, strings.Replace(scenario, "messages:", "mesages:", 1))
		d := m.Run(ctx, "run", file)
		Expect(d.Code).To(Equal(2), "%s", d)
		Expect(d.Stderr).To(MatchRegexp(`spec\.yaml:8:\d+: .*mesages.*messages`))
		Expect(m.Left()).To(BeEmpty())
	}, SpecTimeout(time.Minute))
})
