package dcqcn

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rocebed/rocebed/topo/strict"
)

func named(t testing.TB, name string) Profile {
	t.Helper()
	p, err := ProfileNamed(name)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// knobs are the yaml names of Params, in order.
func knobs() []string {
	var out []string
	for f := range reflect.TypeFor[Params]().Fields() {
		out = append(out, f.Tag.Get("yaml"))
	}
	return out
}

func knob(p *Params, i int) any { return reflect.ValueOf(p).Elem().Field(i).Interface() }

func TestEveryProfileIsValidAndInheritsWhatItDoesNotState(t *testing.T) {
	all := Profiles()
	for _, p := range all {
		if err := errors.Join(p.Params.Validate(), p.Marking.Validate()); err != nil {
			t.Errorf("%s: %v", p.Name, err)
		}
		for _, s := range p.States {
			if s != "marking" && !slices.Contains(knobs(), s) {
				t.Errorf("%s states %q, which is no knob", p.Name, s)
			}
		}
		if p.Base == "" {
			if missing := len(knobs()) - len(p.States); missing != 0 {
				t.Errorf("%s has no base and leaves %d knobs out", p.Name, missing)
			}
			continue
		}
		base := named(t, p.Base)
		for i, name := range knobs() {
			if !slices.Contains(p.States, name) && knob(&p.Params, i) != knob(&base.Params, i) {
				t.Errorf("%s: %s is %v, which it does not state; %s has %v", p.Name, name, knob(&p.Params, i), p.Base, knob(&base.Params, i))
			}
		}
		if !slices.Contains(p.States, "marking") && p.Marking != base.Marking {
			t.Errorf("%s has a curve that neither it nor %s states", p.Name, p.Base)
		}
	}
	if _, err := ProfileNamed("papr"); err == nil || !strings.Contains(err.Error(), "paper") {
		t.Errorf("an unknown profile is answered %v", err)
	}
}

// show writes a value as the sources do: sizes in decimal kilobytes.
func show(v any) string {
	if b, ok := v.(Bytes); ok {
		return strconv.FormatFloat(float64(b)/1e3, 'f', -1, 64) + "KB"
	}
	return fmt.Sprint(v)
}

// profileTable is the table of docs/dcqcn.md: what a profile inherits stands in brackets.
func profileTable() string {
	all := Profiles()
	var b strings.Builder
	row := func(name string, cell func(p *Profile) string) {
		fmt.Fprintf(&b, "| %s |", name)
		for i := range all {
			fmt.Fprintf(&b, " %s |", cell(&all[i]))
		}
		b.WriteByte('\n')
	}
	row("knob", func(p *Profile) string { return "`" + p.Name + "`" })
	row("---", func(*Profile) string { return "---" })
	mark := func(p *Profile, name, value string) string {
		if slices.Contains(p.States, name) {
			return value
		}
		return "(" + value + ")"
	}
	for i, name := range knobs() {
		row("`"+name+"`", func(p *Profile) string { return mark(p, name, show(knob(&p.Params, i))) })
	}
	row("`kmin`, `kmax`, `pmax`", func(p *Profile) string {
		return mark(p, "marking", show(p.Marking.Kmin)+", "+show(p.Marking.Kmax)+", "+show(p.Marking.Pmax))
	})
	row("inherits from", func(p *Profile) string {
		if p.Base == "" {
			return "–"
		}
		return "`" + p.Base + "`"
	})
	return b.String()
}

func TestTheDocsShowTheProfilesAsTheyAre(t *testing.T) {
	page, err := os.ReadFile("../../docs/dcqcn.md")
	if err != nil {
		t.Fatal(err)
	}
	if table := profileTable(); !strings.Contains(string(page), table) {
		t.Errorf("docs/dcqcn.md lacks this table:\n%s", table)
	}
	for _, p := range Profiles() {
		for _, say := range []string{p.Source, p.Unsure} {
			if !strings.Contains(string(page), say) {
				t.Errorf("docs/dcqcn.md does not say of %s: %s", p.Name, say)
			}
		}
	}
	for _, name := range knobs() {
		if !strings.Contains(string(page), "| `"+name+"` |") {
			t.Errorf("docs/dcqcn.md does not explain %s", name)
		}
	}
}

func TestEveryKnobIsCheckedAndTheErrorNamesIt(t *testing.T) {
	for name, spoil := range map[string]func(*Params){
		"rpg_time_reset":             func(p *Params) { p.RPGTimeReset = -1 },
		"rpg_ai_rate":                func(p *Params) { p.RPGAIRate = 0 },
		"rpg_hai_rate":               func(p *Params) { p.RPGHAIRate = 0 },
		"rpg_gd":                     func(p *Params) { p.RPGGD = 12 },
		"rpg_min_dec_fac":            func(p *Params) { p.RPGMinDecFac = 101 },
		"rpg_min_rate":               func(p *Params) { p.RPGMinRate = 0 },
		"dce_tcp_g":                  func(p *Params) { p.DCETCPG = 1024 },
		"dce_tcp_rtt":                func(p *Params) { p.DCETCPRTT = 0 },
		"rate_reduce_monitor_period": func(p *Params) { p.RateReduceMonitorPeriod = -1 },
		"initial_alpha_value":        func(p *Params) { p.InitialAlphaValue = 0 },
		"alpha_update":               func(p *Params) { p.AlphaUpdate = "" },
		"min_time_between_cnps":      func(p *Params) { p.MinTimeBetweenCNPs = -1 },
		"cnp_dscp":                   func(p *Params) { p.CNPDSCP = 64 },
		"cnp_802p_prio":              func(p *Params) { p.CNP802pPrio = 8 },
	} {
		p := named(t, "paper").Params
		spoil(&p)
		var wrong *ParamError
		if _, err := NewReaction(p, 40*Gbps); !errors.As(err, &wrong) || wrong.Param != name || wrong.Want == "" {
			t.Errorf("%s: got %v", name, err)
		}
	}
	var p Params
	if n := strings.Count(p.Validate().Error(), "\n") + 1; n < 6 {
		t.Errorf("empty parameters have %d things wrong, want all told at once", n)
	}
	p = named(t, "paper").Params
	p.RPGTimeReset, p.RPGByteReset = 0, 0
	if p.Validate() == nil {
		t.Error("a flow with neither timer nor byte counter was taken")
	}
}

func TestRatesAreCheckedAgainstTheLine(t *testing.T) {
	for name, spoil := range map[string]func(*Params){
		"rpg_min_rate":             func(p *Params) { p.RPGMinRate = 11 * Gbps },
		"rate_to_set_on_first_cnp": func(p *Params) { p.RateToSetOnFirstCNP = 11 * Gbps },
	} {
		p := named(t, "paper").Params
		spoil(&p)
		var wrong *ParamError
		if _, err := NewReaction(p, 10*Gbps); !errors.As(err, &wrong) || wrong.Param != name {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestAFloorRaisesTheLeastRateAndSaysSo(t *testing.T) {
	p := named(t, "mlx5").Params
	p.RateToSetOnFirstCNP = 2 * Mbps
	if q, raised := p.WithMinRate(500_000); raised || q != p {
		t.Errorf("a floor below the least rate changed it to %v", q.RPGMinRate)
	}
	q, raised := p.WithMinRate(3 * Mbps)
	if !raised || q.RPGMinRate != 3*Mbps || q.RateToSetOnFirstCNP != 3*Mbps {
		t.Errorf("raised %v to %v and %v", raised, q.RPGMinRate, q.RateToSetOnFirstCNP)
	}
	if _, err := NewReaction(q, 10*Gbps); err != nil {
		t.Error(err)
	}
}

func TestAFileChangesTheKnobsThatItNames(t *testing.T) {
	out := struct {
		DCQCN   Params  `yaml:"dcqcn"`
		Marking Marking `yaml:"marking"`
	}{named(t, "mlx5").Params, named(t, "mlx5").Marking}
	want := out
	want.DCQCN.RPGAIRate, want.DCQCN.RPGByteReset, want.DCQCN.AlphaUpdate, want.DCQCN.CNPDSCP = 20*Mbps, 64<<10, AlphaPerCNP, 40
	want.DCQCN.ClampTgtRate, want.DCQCN.DCETCPRTT, want.Marking.Pmax = true, 55000, 0.05
	file := "dcqcn: {rpg_ai_rate: 20Mbps, rpg_byte_reset: 64KiB, alpha_update: cnp, cnp_dscp: 40, clamp_tgt_rate: true, dce_tcp_rtt: 55us}\nmarking: {pmax: 5%}\n"
	if err := strict.Decode("test.yaml", []byte(file), &out); err != nil || out != want {
		t.Errorf("got %+v, %v", out, err)
	}
	if err := strict.Decode("test.yaml", []byte("dcqcn: {rpg_ai_rate: 20}\n"), &out); err == nil {
		t.Error("a rate without a unit was taken")
	}
}
