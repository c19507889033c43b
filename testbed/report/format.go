package report

import (
	"fmt"
	"math"
	"strconv"
	"time"
)

// scale writes v with three significant digits and the largest unit that fits.
func scale(v float64, step float64, units []string) string {
	i := 0
	for math.Abs(v) >= step*0.9995 && i < len(units)-1 {
		v /= step
		i++
	}
	digits := 2
	switch a := math.Abs(v); {
	case i == 0 || a >= 99.95:
		digits = 0
	case a >= 9.995:
		digits = 1
	}
	return strconv.FormatFloat(v, 'f', digits, 64) + " " + units[i]
}

// Rate writes bits per second: "1.25 Gbps".
func Rate(bps int64) string {
	return scale(float64(bps), 1000, []string{"bps", "Kbps", "Mbps", "Gbps", "Tbps"})
}

// Bytes writes a size: "4.00 MiB".
func Bytes(n int64) string {
	return scale(float64(n), 1024, []string{"B", "KiB", "MiB", "GiB", "TiB"})
}

// Count writes a whole number with its thousands apart: "12,345".
func Count(n int64) string {
	s := strconv.FormatInt(n, 10)
	neg := n < 0
	if neg {
		s = s[1:]
	}
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	if neg {
		s = "-" + s
	}
	return s
}

// Span writes a duration with three significant digits, or whole seconds: "12.3 µs", "1500 s".
func Span(d time.Duration) string {
	switch v := float64(d); {
	case d == 0:
		return "–"
	case math.Abs(v) >= 999.5e6:
		return fmt.Sprintf("%.*f s", max(0, 2-int(math.Log10(math.Abs(v)/1e9*1.0005))), v/1e9)
	default:
		return scale(v, 1000, []string{"ns", "µs", "ms"})
	}
}
