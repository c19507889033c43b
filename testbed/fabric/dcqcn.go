package fabric

import (
	"cmp"
	"encoding"
	"reflect"
	"slices"
	"strconv"
	"time"

	"github.com/rocebed/rocebed/datapath/dcqcn"
	"github.com/rocebed/rocebed/topo/strict"
)

// DCQCNOff is the profile of no DCQCN.
const DCQCNOff = "off"

// DCQCNSettings are a NIC's DCQCN: a profile's name alone ("off": none), or a profile and knobs that differ from it.
type DCQCNSettings struct {
	Profile string `yaml:"profile,required"`

	// The knobs, as dcqcn.Params has them; nil: the profile's.
	RPGTimeReset             *time.Duration     `yaml:"rpg_time_reset"`
	RPGByteReset             *dcqcn.Bytes       `yaml:"rpg_byte_reset"`
	RPGThreshold             *uint32            `yaml:"rpg_threshold"`
	RPGAIRate                *dcqcn.Rate        `yaml:"rpg_ai_rate"`
	RPGHAIRate               *dcqcn.Rate        `yaml:"rpg_hai_rate"`
	RPGGD                    *uint32            `yaml:"rpg_gd"`
	RPGMinDecFac             *uint32            `yaml:"rpg_min_dec_fac"`
	RPGMinRate               *dcqcn.Rate        `yaml:"rpg_min_rate"`
	RateToSetOnFirstCNP      *dcqcn.Rate        `yaml:"rate_to_set_on_first_cnp"`
	DCETCPG                  *uint32            `yaml:"dce_tcp_g"`
	DCETCPRTT                *time.Duration     `yaml:"dce_tcp_rtt"`
	RateReduceMonitorPeriod  *time.Duration     `yaml:"rate_reduce_monitor_period"`
	InitialAlphaValue        *uint32            `yaml:"initial_alpha_value"`
	ClampTgtRate             *bool              `yaml:"clamp_tgt_rate"`
	ClampTgtRateAfterTimeInc *bool              `yaml:"clamp_tgt_rate_after_time_inc"`
	AlphaUpdate              *dcqcn.AlphaUpdate `yaml:"alpha_update"`
	MinTimeBetweenCNPs       *time.Duration     `yaml:"min_time_between_cnps"`
	CNPDSCP                  *uint8             `yaml:"cnp_dscp"`
	CNP802pPrio              *uint8             `yaml:"cnp_802p_prio"`
}

// UnmarshalText reads a profile's name.
func (s *DCQCNSettings) UnmarshalText(b []byte) error {
	*s = DCQCNSettings{Profile: string(b)}
	return nil
}

// Params are the parameters that the settings come to; nil: no DCQCN.
func (s *DCQCNSettings) Params() (*dcqcn.Params, error) {
	if s.Profile == DCQCNOff {
		return nil, nil
	}
	p, err := dcqcn.ProfileNamed(s.Profile)
	if err != nil {
		return nil, strict.At("profile", "%w", err)
	}
	params := reflect.ValueOf(&p.Params).Elem()
	given := reflect.ValueOf(s).Elem()
	for i := range given.NumField() {
		if f := given.Field(i); f.Kind() == reflect.Pointer && !f.IsNil() {
			params.FieldByName(given.Type().Field(i).Name).Set(f.Elem())
		}
	}
	return &p.Params, p.Params.Validate()
}

func (s *DCQCNSettings) validate() error {
	if s.Profile == DCQCNOff && *s != (DCQCNSettings{Profile: DCQCNOff}) {
		return strict.At("profile", "off leaves no knobs to turn")
	}
	_, err := s.Params()
	return err
}

// Turn is DCQCN's parameters with some knobs turned, by their names in scenarios; a profile is taken first. Errors are by the knob's name.
func Turn(p dcqcn.Params, knobs map[string]string) (dcqcn.Params, error) {
	names := make([]string, 0, len(knobs))
	for k := range knobs {
		names = append(names, k)
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(-cmp.Compare(yes(a == "profile"), yes(b == "profile")), cmp.Compare(a, b))
	})
	params := reflect.ValueOf(&p).Elem()
	for _, k := range names {
		if k == "profile" {
			profile, err := dcqcn.ProfileNamed(knobs[k])
			if err != nil {
				return p, strict.At(k, "%w", err)
			}
			p = profile.Params
			continue
		}
		i := slices.IndexFunc(reflect.VisibleFields(params.Type()), func(f reflect.StructField) bool { return f.Tag.Get("yaml") == k })
		if i < 0 {
			return p, strict.At(k, "%q is no parameter of DCQCN", k)
		}
		if err := setKnob(params.Field(i), knobs[k]); err != nil {
			return p, strict.At(k, "%w", err)
		}
	}
	return p, p.Validate()
}

func yes(b bool) int {
	if b {
		return 1
	}
	return 0
}

// setKnob gives a knob the value that a text has for it.
func setKnob(knob reflect.Value, text string) (err error) {
	if t, ok := knob.Addr().Interface().(encoding.TextUnmarshaler); ok {
		return t.UnmarshalText([]byte(text))
	}
	switch {
	case knob.Type() == reflect.TypeFor[time.Duration]():
		var d time.Duration
		d, err = time.ParseDuration(text)
		knob.SetInt(int64(d))
	case knob.CanUint():
		var n uint64
		n, err = strconv.ParseUint(text, 10, knob.Type().Bits())
		knob.SetUint(n)
	case knob.Kind() == reflect.Bool:
		var b bool
		b, err = strconv.ParseBool(text)
		knob.SetBool(b)
	default:
		knob.SetString(text)
	}
	return err
}
