package asic

import "strconv"

// Alpha is the factor of a dynamic threshold, in 1024ths: AlphaUnit is 1. SONiC's dynamic_th n is 2^n.
type Alpha uint32

// AlphaUnit is the Alpha of 1.
const AlphaUnit Alpha = 1024

// maxAlpha keeps a threshold within 64 bits for any buffer; nothing is gained beyond.
const maxAlpha = 1024 * AlphaUnit

// String is the factor as people write it: "1/8", "8" or "1.5".
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

// of is the threshold with so much of the shared buffer left.
func (a Alpha) of(left int64) int64 { return int64(a) * left >> 10 }
