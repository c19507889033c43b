package fabric

import (
	"reflect"
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
