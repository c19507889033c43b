package report

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"math"
	"strings"

	"github.com/rocebed/rocebed/testbed/metrics"
	"github.com/rocebed/rocebed/testbed/record"
)

//go:embed page.html
var pageSource string

var page = template.Must(template.New("report").Funcs(template.FuncMap{
	"rate": Rate, "size": Bytes, "count": Count, "span": Span, "verified": verified, "yes": yes, "more": more, "join": strings.Join,
	"whole": func(f float64) string { return Count(int64(f)) },
}).Parse(pageSource))

// chart is one metric over the run, summed over its series.
type chart struct {
	Name, Unit, Points string
	Low, High          string
}

// HTML is the summary, its events and its moving metrics as one page that needs no network.
func HTML(s *record.Summary, r *record.Reader, reg *metrics.Registry) ([]byte, error) {
	events, err := r.Events()
	if err != nil {
		return nil, err
	}
	charts, err := charts(r, reg)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = page.Execute(&b, struct {
		*record.Summary
		Manifest record.Manifest
		Events   []record.Event
		Charts   []chart
	}{s, r.Manifest(), events, charts})
	return b.Bytes(), err
}

// charts draws every metric that moved during the run.
func charts(r *record.Reader, reg *metrics.Registry) ([]chart, error) {
	type point struct{ t, v float64 }
	lines := map[string][]point{}
	err := r.Readings(func(x metrics.Reading) error {
		sums := map[string]float64{}
		for _, s := range x.Samples {
			sums[s.Name] += s.Value
		}
		for name, v := range sums {
			lines[name] = append(lines[name], point{float64(x.At), v})
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	var out []chart
	for _, name := range reg.Names() {
		pts := lines[name]
		if len(pts) < 3 {
			continue
		}
		low, high := math.Inf(1), math.Inf(-1)
		for _, p := range pts {
			low, high = min(low, p.v), max(high, p.v)
		}
		if low == high {
			continue
		}
		const w, h = 300.0, 60.0
		t0, t1 := pts[0].t, pts[len(pts)-1].t
		var b strings.Builder
		for _, p := range pts {
			fmt.Fprintf(&b, "%.1f,%.1f ", w*(p.t-t0)/max(t1-t0, 1), h-h*(p.v-low)/(high-low))
		}
		d, _ := reg.Lookup(name)
		out = append(out, chart{Name: name, Unit: d.Unit, Points: b.String(), Low: Count(int64(low)), High: Count(int64(high))})
	}
	return out, nil
}
