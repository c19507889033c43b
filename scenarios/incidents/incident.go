package incidents

import (
	"embed"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/rocebed/rocebed/testbed"
	"github.com/rocebed/rocebed/topo/strict"
)

// Incident is a failure that was published, and how it is had here.
type Incident struct {
	Name   string `json:"name"`   // of its files, too
	Number int    `json:"number"` // its row among the incidents of docs/faults.md
	Title  string `json:"title"`
	Source string `json:"source"` // who published it, and where

	Seen      string `json:"seen"`      // what people saw
	Mechanism string `json:"mechanism"` // what was behind it
	Cure      string `json:"cure"`      // what ended it, and how the cured scenario has it
	Look      string `json:"look"`      // where it shows in the record

	// Backends are those that it is asserted on, sim first.
	Backends []testbed.Backend `json:"backends"`
	// Figures are what a run is told in, without the cure and with it.
	Figures []Figure `json:"figures"`
}

// Figure is one number that an incident shows in.
type Figure struct {
	Name string `json:"name"`
	Unit Unit   `json:"unit"`
	Expr string `json:"expr"` // in the language of expectations
}

// Unit is how a figure is written.
type Unit string

// The units. Expressions give bits a second, nanoseconds, or a plain number.
const (
	Rate  Unit = "rate"
	Time  Unit = "time"
	Count Unit = "count"
	Ratio Unit = "ratio"
)

//go:embed *.yaml
var files embed.FS

// All are the incidents, by number.
func All() []Incident { return slices.Clone(catalogue) }

// Names are their names, by number.
func Names() []string {
	var out []string
	for _, x := range catalogue {
		out = append(out, x.Name)
	}
	return out
}

// Find is the incident of that name or number.
func Find(name string) (Incident, error) {
	for _, x := range catalogue {
		if x.Name == name || strconv.Itoa(x.Number) == name {
			return x, nil
		}
	}
	return Incident{}, fmt.Errorf("there is no incident %q%s", name, strict.DidYouMean(name, Names()))
}

// File is the name of the scenario's file.
func (x Incident) File(cured bool) string {
	if cured {
		return x.Name + ".cure.yaml"
	}
	return x.Name + ".yaml"
}

// Text is the scenario as it lies in the binary.
func (x Incident) Text(cured bool) []byte {
	text, err := files.ReadFile(x.File(cured))
	if err != nil {
		panic(err) // the catalogue names what isn't embedded: no test passes then
	}
	return text
}

// Scenario reads and checks it.
func (x Incident) Scenario(cured bool) (*testbed.Scenario, error) {
	return testbed.Parse("scenarios/incidents/"+x.File(cured), x.Text(cured))
}

// On says whether the incident is asserted on the backend.
func (x Incident) On(b testbed.Backend) bool { return slices.Contains(x.Backends, b) }

// Diff is the cure: what the cured scenario takes away (-) and adds (+), comments, names and expectations left out.
func (x Incident) Diff() []string { return diff(settings(x.Text(false)), settings(x.Text(true))) }

// settings are the lines of a scenario that say what there is and what happens.
func settings(text []byte) []string {
	body, _, _ := strings.Cut(string(text), "\nexpect:")
	var out []string
	for _, line := range strings.Split(body, "\n") {
		line, _, _ = strings.Cut(line, "   #")
		trimmed := strings.TrimSpace(line)
		if trimmed == "" || strings.HasPrefix(trimmed, "#") || strings.HasPrefix(line, "name:") {
			continue
		}
		out = append(out, line)
	}
	return out
}

// diff is the shortest way from a to b, by their longest common subsequence.
func diff(a, b []string) []string {
	long := make([][]int, len(a)+1)
	for i := range long {
		long[i] = make([]int, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
				long[i][j] = long[i+1][j+1] + 1
			} else {
				long[i][j] = max(long[i+1][j], long[i][j+1])
			}
		}
	}
	var out []string
	i, j := 0, 0
	for i < len(a) || j < len(b) {
		switch {
		case i < len(a) && j < len(b) && a[i] == b[j]:
			i, j = i+1, j+1
		case j == len(b) || (i < len(a) && long[i+1][j] >= long[i][j+1]):
			out = append(out, "-"+a[i])
			i++
		default:
			out = append(out, "+"+b[j])
			j++
		}
	}
	return out
}
