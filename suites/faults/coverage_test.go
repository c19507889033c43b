package faults_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/rocebed/rocebed/faults"
	"github.com/rocebed/rocebed/suites/bed"
	"github.com/rocebed/rocebed/testbed"
)

// covered are the kinds, with what they have in variants, that rows are about.
var covered = map[string]bool{}

// covers notes what a row's fault, in flow style without its braces, is about.
func covers(fault string) {
	for _, s := range signatures(fault) {
		covered[s] = true
	}
}

// words are keys whose value is a variant of its own.
var words = []string{"distribution", "half"}

// signatures name what of a kind a fault uses: its keys, words among their values, verbs of packet events.
func signatures(fault string) []string {
	s, err := testbed.Parse("row.yaml", []byte(`apiVersion: rocebed/v1
name: row
topology: {spine-leaf: {spines: 2, leaves: 2, hosts_per_leaf: 2}}
switches: {memory: 32MB, pfc: {}, ecn: {kmin: 100KB, kmax: 400KB, pmax: 20%}, watchdog: {detect: 1ms}}
workloads: [{name: w, kind: write, from: [h1], to: [h4], messages: 1, qps: 4}]
faults: [{`+withPlace(fault)+`}]
`))
	if err != nil {
		panic(fmt.Sprintf("%s: %v", fault, err))
	}
	f := &s.Faults[0]
	if f.Kind == faults.Packets {
		var out []string
		for _, e := range f.Events {
			for _, a := range e.Do {
				out = append(out, "packets "+string(a.Verb))
			}
		}
		if len(f.DataPktEvents) > 0 {
			out = append(out, "packets data-pkt-events")
		}
		return out
	}
	used := []string{}
	for _, u := range faults.DefOf(f.Kind).Keys {
		if strings.Contains(fault, u.Key+":") {
			value := ""
			if slices.Contains(words, u.Key) {
				_, value, _ = strings.Cut(fault, u.Key+":")
				value = ":" + strings.Trim(strings.FieldsFunc(value, func(r rune) bool { return r == ',' || r == '}' })[0], " ")
			}
			used = append(used, u.Key+value)
		}
	}
	slices.Sort(used)
	return []string{strings.Join(append([]string{string(f.Kind)}, used...), " ")}
}

// withPlace gives a row's fault a name and, where it has none, a place in the fabric that signatures are read in.
func withPlace(fault string) string {
	if strings.HasPrefix(fault, "{") {
		fault = fault[1 : len(fault)-1]
	}
	if !strings.Contains(fault, "name:") {
		fault = "name: x, " + fault
	}
	if strings.Contains(fault, "at: [") || strings.Contains(fault, "at: ['") {
		return fault
	}
	for _, d := range faults.Defs() {
		if strings.Contains(fault+",", "kind: "+string(d.Kind)+",") {
			at := d.Example[strings.Index(d.Example, "at: ["):]
			return at[:strings.Index(at, "]")+1] + ", " + fault
		}
	}
	return fault
}

var _ = Describe("the kinds that the backend claims", func() {
	It("have a row each, and each of their variants", func() {
		var missing []string
		for _, d := range faults.Defs() {
			for _, example := range d.Examples() {
				if testbed.CanFault(bed.Backend(), example) != nil {
					continue
				}
				for _, s := range signatures(example) {
					if !covered[s] && !slices.Contains(missing, s) {
						missing = append(missing, s)
					}
				}
			}
		}
		Expect(missing).To(BeEmpty(), "claimed by %s, and no row is about them", bed.Backend())
	})
})

var _ = Describe("a kind that the backend refuses", func() {
	for _, d := range faults.Defs() {
		for i, example := range d.Examples() {
			why := testbed.CanFault(bed.Backend(), example)
			if why == nil {
				continue
			}
			It(fmt.Sprintf("is refused before anything is made, with the reason: %s %d", d.Kind, i+1), func(ctx SpecContext) {
				out := filepath.Join(GinkgoT().TempDir(), "record")
				Expect(why.Error()).NotTo(BeEmpty())
				Expect(refused(ctx, out, example)).To(MatchError(ContainSubstring(why.Error())))
				_, err := os.Stat(out)
				Expect(os.IsNotExist(err)).To(BeTrue(), "there is no record: %v", err)
			})
		}
	}
})

// refused runs a scenario with the fault, which must not get anywhere.
func refused(ctx context.Context, out, fault string) error {
	s, err := testbed.Parse("refused.yaml", []byte(`apiVersion: rocebed/v1
name: refused
topology: {spine-leaf: {spines: 2, leaves: 2, hosts_per_leaf: 2}}
workloads: [{name: w, kind: write, from: [h1], to: [h4], messages: 1}]
faults: [`+fault+`]
`))
	if err != nil {
		return err
	}
	_, err = testbed.Run(ctx, s, testbed.RunOptions{Backend: bed.Backend(), Out: out})
	return err
}
