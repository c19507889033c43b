package agreement

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rocebed/rocebed/testbed"
)

// Yardstick is the backend that the others are held against.
const Yardstick = testbed.Sim

// Row is a run's figures and what they are held to.
type Row struct {
	*Figures
	Checks []Check `json:"checks"` // none of the yardstick's own
}

// Held says whether all is within its tolerance.
func (r *Row) Held() bool { return len(r.Misses()) == 0 }

// Misses are the metrics that aren't.
func (r *Row) Misses() (out []string) {
	for _, c := range r.Checks {
		if !c.Held && !slices.Contains(out, c.Metric) {
			out = append(out, c.Metric)
		}
	}
	return out
}

// Table is all figures, and the claims of each scene and backend.
type Table struct {
	Rows   []Row         `json:"rows"`
	Claims []SceneClaims `json:"claims"`
}

// SceneClaims are a backend's of a scene.
type SceneClaims struct {
	Scene   string          `json:"scene"`
	Backend testbed.Backend `json:"backend"`
	Claims  []Claim         `json:"claims"`
}

// NewTable holds figures against the yardstick's among them.
func NewTable(all []*Figures) *Table {
	t := &Table{}
	for _, s := range Scenes() {
		by := map[testbed.Backend]map[Mode]*Figures{}
		var backends []testbed.Backend
		for _, f := range all {
			if f.Scene != s.Name {
				continue
			}
			if by[f.Backend] == nil {
				by[f.Backend] = map[Mode]*Figures{}
				backends = append(backends, f.Backend)
			}
			by[f.Backend][f.Mode] = f
		}
		for _, m := range Modes() {
			for _, b := range backends {
				f := by[b][m]
				if f == nil {
					continue
				}
				r := Row{Figures: f}
				if y := by[Yardstick][m]; y != nil && b != Yardstick {
					r.Checks = Compare(y, f)
				}
				t.Rows = append(t.Rows, r)
			}
		}
		for _, b := range backends {
			t.Claims = append(t.Claims, SceneClaims{s.Name, b, Claims(by[b])})
		}
	}
	return t
}

// Misses says what isn't held, a line each.
func (t *Table) Misses() (out []string) {
	for i := range t.Rows {
		r := &t.Rows[i]
		for k := range r.Checks {
			if c := &r.Checks[k]; !c.Held {
				out = append(out, fmt.Sprintf("%s, %s, %s: %s", r.Scene, r.Mode, r.Backend, c))
			}
		}
	}
	for _, s := range t.Claims {
		for _, c := range s.Claims {
			if !c.Held {
				out = append(out, fmt.Sprintf("%s on %s: not so: %s (%s)", s.Scene, s.Backend, c.Text, c.Saw))
			}
		}
	}
	return out
}

// Markdown is the table of figures for a page.
func (t *Table) Markdown() string {
	var b strings.Builder
	b.WriteString("| scene | with | backend | measured, ms | goodput, Gb/s | Jain | queue mean, p99, KB | CNPs | pauses | paused, ms | retransmissions | drops | outside its tolerance |\n")
	b.WriteString("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n")
	for i := range t.Rows {
		r := &t.Rows[i]
		backend := string(r.Backend)
		if r.Backend != Yardstick {
			backend += fmt.Sprintf(", 1:%d", r.Dilation)
		}
		if r.Runs > 1 {
			backend += fmt.Sprintf(", mean of %d", r.Runs)
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %.0f | %s | %.3f | %.0f, %.0f | %.0f | %.0f | %.1f | %.0f | %.0f | %s |\n",
			r.Scene, r.Mode, backend, r.Length.Seconds()*1e3, shares(r.Goodput), r.Jain, r.Mean/1e3, r.P99/1e3, r.CNPs, r.Pauses, float64(r.Paused)/1e6, r.Retries, r.Drops, strings.Join(r.Misses(), ", "))
	}
	return b.String()
}

func shares(bps []float64) string {
	var out []string
	for _, v := range bps {
		out = append(out, fmt.Sprintf("%.2f", v/1e9))
	}
	return strings.Join(out, " ")
}

// ClaimsMarkdown is what the mechanisms did by themselves, for a page.
func (t *Table) ClaimsMarkdown() string {
	var backends []string
	type key struct{ scene, text string }
	var keys []key
	saw := map[key]map[string]string{}
	for _, s := range t.Claims {
		if !slices.Contains(backends, string(s.Backend)) {
			backends = append(backends, string(s.Backend))
		}
		for _, c := range s.Claims {
			k := key{s.Scene, c.Text}
			if saw[k] == nil {
				saw[k] = map[string]string{}
				keys = append(keys, k)
			}
			saw[k][string(s.Backend)] = c.Saw
			if !c.Held {
				saw[k][string(s.Backend)] = "**not so**: " + c.Saw
			}
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "| scene | | %s |\n| --- | --- |%s\n", strings.Join(backends, " | "), strings.Repeat(" --- |", len(backends)))
	for _, k := range keys {
		fmt.Fprintf(&b, "| %s | %s |", k.scene, k.text)
		for _, n := range backends {
			fmt.Fprintf(&b, " %s |", saw[k][n])
		}
		b.WriteString("\n")
	}
	return b.String()
}

// TolerancesMarkdown is what is allowed, and why, for a page.
func TolerancesMarkdown() string {
	var b strings.Builder
	b.WriteString("| metric | with | tolerance | because |\n| --- | --- | --- | --- |\n")
	for _, t := range Tolerances() {
		var modes []string
		for _, m := range t.Modes {
			modes = append(modes, string(m))
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", t.Metric, strings.Join(modes, ", "), t.allowed(), t.Why)
	}
	return b.String()
}

func (t *Tolerance) allowed() string {
	var parts []string
	switch {
	case t.Share >= 1:
		parts = append(parts, fmt.Sprintf("a factor of %.0f", 1+t.Share))
	case t.Share > 0:
		parts = append(parts, fmt.Sprintf("%.0f %%", 100*t.Share))
	}
	if t.Least > 0 || t.Share == 0 {
		parts = append(parts, strings.TrimSpace(fmt.Sprintf("%v %s", t.Least, t.Unit)))
	}
	return strings.Join(parts, ", at least ")
}
