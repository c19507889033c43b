package strict

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"
)

// percent is a text type, as topo's units are.
type percent float64

func (p *percent) UnmarshalText(b []byte) error {
	if _, err := fmt.Sscanf(string(b), "%f%%", (*float64)(p)); err != nil {
		return fmt.Errorf("%q is not a share", b)
	}
	return nil
}

// end is written short ("a:b") or long ({node: a, port: b}).
type end struct {
	Node string `yaml:"node,required"`
	Port string `yaml:"port"`
}

func (e *end) UnmarshalText(b []byte) error {
	e.Node, e.Port, _ = strings.Cut(string(b), ":")
	return nil
}

type common struct {
	Note string `yaml:"note"`
}

type sample struct {
	common `yaml:",inline"`
	Seed   uint64         `yaml:"seed"`
	Name   string         `yaml:"name"`
	On     bool           `yaml:"on"`
	Small  int8           `yaml:"small"`
	Share  percent        `yaml:"share"`
	Delay  time.Duration  `yaml:"delay"`
	Ends   []end          `yaml:"ends"`
	Sizes  map[string]int `yaml:"sizes"`
	Inner  *sample        `yaml:"inner"`
	Free   any            `yaml:"free"`
	Ratio  float64        `yaml:"ratio"`
	Hidden string         `yaml:"-"`
}

func TestAFileBecomesAStruct(t *testing.T) {
	const file = `
# a comment
seed: 0x10
name: "fab: one"   # quoted
on: true
small: -3
share: 1.5%
delay: 2us
note: |
  two
  lines
ends:
  - leaf1:eth0
  - {node: h1, port: eth1}
sizes: {a: 1, b: 2}
inner:
  name: deep
  delay: 0
free: {x: [1, two, 2.5, true]}
ratio: 3
`
	var got sample
	if err := Decode("f.yaml", []byte(file), &got); err != nil {
		t.Fatal(err)
	}
	want := sample{
		common: common{Note: "two\nlines\n"}, Seed: 16, Name: "fab: one", On: true, Small: -3, Share: 1.5, Delay: 2 * time.Microsecond,
		Ends: []end{{"leaf1", "eth0"}, {"h1", "eth1"}}, Sizes: map[string]int{"a": 1, "b": 2}, Inner: &sample{Name: "deep"},
		Free: map[string]any{"x": []any{uint64(1), "two", 2.5, true}}, Ratio: 3,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestEveryProblemIsReportedAtItsPlaceWithAHint(t *testing.T) {
	cases := []struct{ name, file, want string }{
		{"misspelt key", "seed: 1\nsead: 1", `f.yaml:2:1: unknown key "sead" (did you mean "seed"?)`},
		{"misspelt inside", "inner:\n  nmae: x", `f.yaml:2:3: unknown key "nmae" in inner (did you mean "name"?)`},
		{"nothing near", "inner: {zzzzzz: 1}", `f.yaml:1:9: unknown key "zzzzzz" in inner (there is: delay, ends, free, inner, name, note, on, ratio, seed, share, sizes, small)`},
		{"hidden field", "Hidden: x", `f.yaml:1:1: unknown key "Hidden" (there is: delay,`},
		{"key twice", "seed: 1\nname: x\nseed: 2", `f.yaml:3:1: key "seed" given twice (first on line 1)`},
		{"key twice inside", "sizes: {a: 1, a: 2}", `f.yaml:1:15: key "a" given twice (first on line 1)`},
		{"word for number", "seed: two", `f.yaml:1:7: seed: want a whole number, not negative, got "two"`},
		{"negative", "seed: -1", `f.yaml:1:7: seed: want a whole number, not negative, got -1`},
		{"quoted number", `seed: "1"`, `f.yaml:1:7: seed: want a whole number, not negative, got "1"`},
		{"too large", "small: 200", `f.yaml:1:8: small: want a whole number from -128 to 127, got 200`},
		{"number for text", "name: 1", `f.yaml:1:7: name: want a text, got 1 (put it in quotes)`},
		{"bool", "on: maybe", `f.yaml:1:5: on: want true or false, got "maybe"`},
		{"no unit", "delay: 5", `f.yaml:1:8: delay: "5" is not a duration: it lacks a unit (units: ns us ms s m h, such as "2us")`},
		{"wrong unit", "delay: 5 parsecs", `f.yaml:1:8: delay: "5 parsecs" is not a duration (units:`},
		{"negative duration", "delay: -5us", `f.yaml:1:8: delay: a duration can't be negative`},
		{"unit type", "share: lots", `f.yaml:1:8: share: "lots" is not a share`},
		{"list for text", "name: [a]", `f.yaml:1:7: name: want a text, got a list`},
		{"map for list", "ends: {node: a}", `f.yaml:1:7: ends: want a list, got keys with values`},
		{"scalar for map", "sizes: 3", `f.yaml:1:8: sizes: want keys with values, got 3`},
		{"missing", "ends:\n  - {port: x}", `f.yaml:2:5: ends[0]: key "node" is missing`},
		{"no value", "name:\nseed: 1", `f.yaml:1:6: name: has no value (leave the key out, or give it one)`},
		{"in a list", "ends:\n  - a:b\n  - {node: a, prt: b}", `f.yaml:3:15: unknown key "prt" in ends[1] (did you mean "port"?)`},
		{"tag", "name: !!str x", `f.yaml:1:7: name: tags such as !!str aren't used here`},
		{"merge", "inner: {<<: {name: x}}", `merge keys aren't used here`},
		{"no anchor", "name: *x", `f.yaml:1:7: name: no anchor &x before here`},
		{"bad key", "[a]: 1", `f.yaml:1:`},
		{"list at the top", "- a", `f.yaml:1:1: want keys with values, got a list`},
		{"empty", "# nothing\n", `f.yaml:1:1: the file is empty`},
		{"two documents", "seed: 1\n---\nseed: 2", `f.yaml:3:5: a second document begins here; one file holds one`},
		{"syntax", "seed: 1\nname: [1, 2", `f.yaml:2:7: not YAML:`},
		{"unclosed", "name: 'abc", `f.yaml:1:7: not YAML:`},
		{"not text", "name: \xff", `not UTF-8 text`},
		{"nan", "ratio: .nan", `f.yaml:1:8: ratio: want a number, got .nan`},
		{"several", "sead: 1\nname: 3\ndelay: x", "f.yaml:1:1: unknown key \"sead\" (did you mean \"seed\"?)\nf.yaml:2:7: name: want"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var out sample
			err := Decode("f.yaml", []byte(c.file), &out)
			if err == nil {
				t.Fatalf("accepted as %+v", out)
			}
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
			if _, ok := errors.AsType[Problems](err); !ok {
				t.Errorf("%T is not Problems", err)
			}
			if p, ok := errors.AsType[*Problem](err); !ok || p.Line < 1 || p.Col < 1 {
				t.Errorf("a problem without a place: %+v", p)
			}
		})
	}
}

func TestAnchorsWorkAndCannotExplode(t *testing.T) {
	var out sample
	if err := Decode("f", []byte("inner: &x {name: a, sizes: {q: 1}}\nfree: *x"), &out); err != nil {
		t.Fatal(err)
	}
	if m, ok := out.Free.(map[string]any); !ok || m["name"] != "a" {
		t.Errorf("the alias gave %v", out.Free)
	}
	bomb := "free:\n  - &a0 [x]\n"
	for i := 1; i < 40; i++ {
		bomb += fmt.Sprintf("  - &a%d [*a%d, *a%d, *a%d]\n", i, i-1, i-1, i-1)
	}
	if err := Decode("f", []byte(bomb), &out); err == nil || !strings.Contains(err.Error(), "repeated too much") {
		t.Errorf("a billion laughs gave %v", err)
	}
	if err := Decode("f", []byte("free: &a [*a]"), &out); err == nil {
		t.Error("an anchor that contains itself was accepted")
	}
}

func TestDeepNestingIsRefusedNotCrashedOn(t *testing.T) {
	for _, s := range []string{"[", "{a: ", "- ", "? ", "&a ", "!t ", "{", "a:\n "} {
		var out sample
		if err := Decode("f", []byte("free: "+strings.Repeat(s, 100_000)), &out); err == nil {
			t.Errorf("100,000 times %q was accepted", s)
		}
	}
	deep := ""
	for i := range 300 {
		deep += strings.Repeat(" ", i) + "inner:\n"
	}
	if err := Decode("f", []byte(deep), new(sample)); err == nil {
		t.Error("300 levels of keys were accepted")
	}
}

func TestDefaultsStayWhereTheFileIsSilent(t *testing.T) {
	out := sample{Name: "before", Inner: &sample{Seed: 7}}
	if err := Decode("f", []byte("seed: 1\ninner: {name: x}"), &out); err != nil {
		t.Fatal(err)
	}
	if out.Name != "before" || out.Inner.Seed != 7 || out.Inner.Name != "x" {
		t.Errorf("defaults were lost: %+v %+v", out, out.Inner)
	}
}

func TestSemanticProblemsFindTheirPlace(t *testing.T) {
	var out sample
	doc, err := Read("f.yaml", []byte("seed: 1\ninner:\n  ends:\n    - a:b\n    - c:d\n"), &out)
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]position{
		"seed": {1, 1}, "inner": {2, 1}, "inner.ends": {3, 3}, "inner.ends[1]": {5, 7},
		"inner.ends[1].node": {5, 7}, "inner.ends[9]": {3, 3}, "nowhere": {1, 1}, "": {1, 1},
	} {
		if l, c := doc.Pos(path); (position{l, c}) != want {
			t.Errorf("Pos(%q) = %d:%d, want %v", path, l, c, want)
		}
	}
	boom := errors.New("boom")
	part := errors.Join(At("ends[1]", "no node %q", "c"), Under("ends", Under("[0]", boom)), boom)
	got := doc.Locate("inner", part)
	want := "f.yaml:2:1: boom\nf.yaml:4:7: boom\nf.yaml:5:7: no node \"c\""
	if got.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", got, want)
	}
	if !errors.Is(got, boom) {
		t.Error("the cause is lost")
	}
	if doc.Locate("inner", nil) != nil {
		t.Error("no error became one")
	}
	if !doc.Has("inner.ends") || doc.Has("name") {
		t.Error("Has is wrong about what the file gave")
	}
}

func TestNearestForgivesSlipsNotGuesses(t *testing.T) {
	keys := []string{"spines", "leaves", "hosts_per_leaf", "seed", "mtu"}
	for word, want := range map[string]string{
		"spine": "spines", "leafs": "leaves", "laeves": "leaves", "host_per_leaf": "hosts_per_leaf", "sead": "seed", "mut": "mtu",
		"qwerty": "", "": "", "hosts-per-leaf": "hosts_per_leaf", strings.Repeat("x", 100): "",
	} {
		if got := Nearest(word, keys); got != want {
			t.Errorf("Nearest(%q) = %q, want %q", word, got, want)
		}
	}
}

func TestOnlyStructPointersAreDecodedInto(t *testing.T) {
	var m map[string]int
	var nilp *sample
	for _, out := range []any{nil, 3, sample{}, &m, nilp} {
		if err := Decode("f", []byte("a: 1"), out); err == nil {
			t.Errorf("decoded into %T", out)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, s := range []string{
		"seed: 1\nends: [a:b, {node: c}]\n", "inner: &a {name: *a}", "free: {x: [1, two], ? y : z}", "a: |\n  b\n- c", "---\n...\n---", "{<<: [*a]}", "%YAML 1.2\n--- !t\n",
		"? \n: [", "\t- \x00", "name: \"\\u12", "a: 1\n a: 2\n", "- - - : - ", "&a : *a", "? a\n", "{a, b}", "[a: b, : ]",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var out sample
		err := Decode("f", data, &out)
		if err == nil {
			return
		}
		lines := strings.Count(string(data), "\n") + strings.Count(string(data), "\r") + 2 // YAML breaks lines at either
		for _, p := range err.(Problems) {
			if p.Line < 1 || p.Line > lines || p.Col < 1 || p.Err == nil {
				t.Errorf("problem at an impossible place %d:%d of %d lines: %v", p.Line, p.Col, lines, p.Err)
			}
		}
	})
}
