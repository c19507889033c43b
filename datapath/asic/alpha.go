package asic

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Alpha is the factor of a dynamic threshold, in 1024ths: AlphaUnit is 1. It is written "1/8", "8" or
// "0.125". SONiC's dynamic_th n is 2^n.
type Alpha uint32

// AlphaUnit is the Alpha of 1.
const AlphaUnit Alpha = 1024

// maxAlpha keeps a threshold within 64 bits for any buffer; nothing is gained beyond.
const maxAlpha = 1024 * AlphaUnit

// UnmarshalText reads "1/8", "8" or "0.125".
func (a *Alpha) UnmarshalText(b []byte) error {
	num, den, ratio := strings.Cut(string(b), "/")
	v, err := strconv.ParseFloat(strings.TrimSpace(num), 64)
	if ratio && err == nil {
		var d float64
		d, err = strconv.ParseFloat(strings.TrimSpace(den), 64)
		v /= d
	}
	v = math.Round(v * float64(AlphaUnit))
	if err != nil || !(v >= 0 && v <= float64(maxAlpha)) {
		return fmt.Errorf("%q is no alpha: give a factor such as 1/8, up to %d", b, maxAlpha/AlphaUnit)
	}
	*a = Alpha(v)
	return nil
}

// String writes what UnmarshalText reads.
func (a Alpha) String() string {
	for den := Alpha(1); den <= AlphaUnit; den *= 2 {
		if a*den%AlphaUnit == 0 && a != 0 && (den == 1 || a*den == AlphaUnit) {
			if den == 1 {
				return strconv.Itoa(int(a / AlphaUnit))
			}
			return "1/" + strconv.Itoa(int(den))
		}
	}
	return strconv.FormatFloat(float64(a)/float64(AlphaUnit), 'f', -1, 64)
}

// MarshalText writes what UnmarshalText reads.
func (a Alpha) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// of is the threshold with so much of the shared buffer left.
func (a Alpha) of(left int64) int64 { return int64(a) * left >> 10 }
