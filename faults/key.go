package faults

import (
	"reflect"
	"strings"
)

// Unit is what a key's value is, and so what can be said of it whatever the kind.
type Unit string

// The units.
const (
	UnitShare     Unit = "share"    // above 0 % and at most 100 %
	UnitTime      Unit = "time"     // fabric time, above 0
	UnitRate      Unit = "rate"     // bits a second of fabric time, above 0
	UnitBytes     Unit = "bytes"    // at least 1
	UnitCount     Unit = "count"    // at least 1
	UnitNumber    Unit = "number"   // any whole number from 0 on
	UnitFrequency Unit = "a second" // of fabric time, above 0
	UnitFactor    Unit = "factor"   // above 0
	UnitPriority  Unit = "priority" // 0 to 7, each once
	UnitDSCP      Unit = "DSCP"     // 0 to 63
	UnitWord      Unit = "word"     // one of a few, which the kind names
	UnitOther     Unit = ""         // checked by the kind
)

// Key is a key that some kinds of faults have.
type Key struct {
	Name string
	Unit Unit
	Doc  string

	field []int // in Spec
}

// Keys are the keys that only some kinds have, in the order of the documentation. Those that every fault has aren't among them.
func Keys() []Key { return keyTable }

var keyTable = fields([]Key{
	{Name: "events", Doc: "what is done to which packets"},
	{Name: "data-pkt-events", Doc: "Lumina's events, as they are"},

	{Name: "probability", Unit: UnitShare, Doc: "the share of packets hit, each by lot"},
	{Name: "every_nth", Unit: UnitCount, Doc: "every nth packet exactly"},
	{Name: "gilbert_elliott", Doc: "`p`, `r`, `loss_bad`, `loss_good`: two states, each with a loss of its own"},
	{Name: "delay", Unit: UnitTime, Doc: "how much later"},
	{Name: "jitter", Unit: UnitTime, Doc: "how far the delay varies, at most the delay"},
	{Name: "distribution", Unit: UnitWord, Doc: "how it varies"},
	{Name: "gap", Unit: UnitCount, Doc: "no sooner than so many packets after the last"},
	{Name: "window", Unit: UnitCount, Doc: "exactly so many packets overtake one that is hit"},
	{Name: "ber", Doc: "the share of bits that flip, such as 1e-9"},
	{Name: "rate", Unit: UnitRate, Doc: "what is still carried"},
	{Name: "mtu", Unit: UnitBytes, Doc: "the longest IP packet that passes"},
	{Name: "period", Unit: UnitTime, Doc: "from one time to the next"},
	{Name: "down", Unit: UnitTime, Doc: "how long it is down"},
	{Name: "duty", Unit: UnitShare, Doc: "the share of the time"},

	{Name: "priorities", Unit: UnitPriority, Doc: "of these alone"},
	{Name: "kmin", Unit: UnitBytes, Doc: "where marking begins"},
	{Name: "kmax", Unit: UnitBytes, Doc: "from where on everything is marked"},
	{Name: "pmax", Unit: UnitShare, Doc: "the probability of a mark at kmax"},
	{Name: "dscp_map", Doc: "priorities by DSCP, such as {26: 0}"},
	{Name: "half", Unit: UnitWord, Doc: "`send` or `obey` alone; default both"},
	{Name: "xoff", Unit: UnitOther, Doc: "bytes at which a group pauses its priority"},
	{Name: "xon", Unit: UnitOther, Doc: "how many bytes below that the pause ends"},
	{Name: "headroom", Unit: UnitOther, Doc: "bytes for what comes after the pause was sent"},
	{Name: "alpha", Unit: UnitFactor, Doc: "of the dynamic threshold: times what is left of the shared memory"},
	{Name: "buffer", Unit: UnitBytes, Doc: "what is left of the packet memory"},
	{Name: "hash_seed", Unit: UnitOther, Doc: "the seed that all have; default 0"},

	{Name: "frequency", Unit: UnitFrequency, Doc: "how often"},
	{Name: "quanta", Unit: UnitCount, Doc: "what a pause asks for, 512 bit times each; default 65535"},
	{Name: "pcie", Doc: "the link as it trains now, such as gen3 x4"},
	{Name: "entries", Unit: UnitCount, Doc: "pages that the translation cache still holds"},
	{Name: "workload", Doc: "whose queue pairs; default every workload's"},
	{Name: "flows", Doc: "which of the workload's flows, by number: 0, [0, 3], 2..5; default all"},
	{Name: "ack_every", Unit: UnitCount, Doc: "packets that ask for an ACK which one answers"},
	{Name: "dcqcn", Doc: "DCQCN's parameters, by the names of a scenario's nics.dcqcn"},
	{Name: "addr", Doc: "the address of a wrong GID; default one that nobody has"},

	{Name: "gpus", Doc: "GPUs by number; default all of the host"},
	{Name: "speed", Unit: UnitShare, Doc: "of what is normal"},

	{Name: "to", Doc: "the NICs that it goes to, selected as in `at`"},
	{Name: "streams", Unit: UnitCount, Doc: "at once, between each pair of NICs; default 1"},
	{Name: "size", Unit: UnitBytes, Doc: "payload of a packet (of RoCE: of a message)"},
	{Name: "bytes", Unit: UnitBytes, Doc: "of a burst, from each sender"},
	{Name: "dscp", Unit: UnitDSCP, Doc: "of the traffic; default 0"},
})

// common are the keys that every fault has.
var common = []string{"name", "kind", "at", "direction", "one_way", "random", "may_miss", "schedule", "sequence", "parallel", "storm"}

var keyByName = func() map[string]*Key {
	m := map[string]*Key{}
	for i := range keyTable {
		m[keyTable[i].Name] = &keyTable[i]
	}
	return m
}()

// fields finds the keys' fields in Spec. A key without one is a mistake of the table, which shows at once.
func fields(all []Key) []Key {
	byName := map[string][]int{}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[Spec]()) {
		if name, opts, _ := strings.Cut(f.Tag.Get("yaml"), ","); opts != "inline" {
			byName[name] = f.Index
		}
	}
	for i := range all {
		if all[i].field = byName[all[i].Name]; all[i].field == nil {
			panic("faults: no field of Spec has the key " + all[i].Name)
		}
	}
	return all
}

// value is the key's field of a spec.
func (k *Key) value(s *Spec) reflect.Value { return reflect.ValueOf(s).Elem().FieldByIndex(k.field) }

// given says that a spec has the key.
func (k *Key) given(s *Spec) bool {
	v := k.value(s)
	if k := v.Kind(); k == reflect.Slice || k == reflect.Map {
		return v.Len() > 0
	}
	return !v.IsZero()
}
