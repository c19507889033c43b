//go:build linux

package tc

import "math"

// Netem draws a random index into a table of quantiles; an entry is a deviation from the mean in
// units of the standard deviation, times 8192 (NETEM_DIST_SCALE, net/sched/sch_netem.c).
const (
	distributionScale = 8192
	distributionSize  = 4096
)

// Distributions are the names that DistributionTable knows, beside "" and "uniform", which need
// no table.
var Distributions = []string{"normal", "pareto", "paretonormal"}

// DistributionTable is the table of a named distribution; nil for one that needs none or is
// unknown. Tables are computed, since the ones that come with tc may not be on the machine.
//
// pareto is Pareto's distribution with shape 3 and minimum 1, shifted to mean 0 and scaled to
// standard deviation 1: its mean is 3/2 and its variance 3/4. paretonormal is the sum of a
// quarter of a normal and three quarters of a Pareto deviate at equal quantiles. Entries are cut
// at ±4 standard deviations, which is what 16 bits hold.
func DistributionTable(name string) []int16 {
	var quantile func(p float64) float64
	switch name {
	case "normal":
		quantile = normalQuantile
	case "pareto":
		quantile = paretoQuantile
	case "paretonormal":
		quantile = func(p float64) float64 { return normalQuantile(p)/4 + paretoQuantile(p)*3/4 }
	default:
		return nil
	}
	table := make([]int16, distributionSize)
	for i := range table {
		v := math.Round(quantile((float64(i)+0.5)/distributionSize) * distributionScale)
		table[i] = int16(max(math.MinInt16, min(math.MaxInt16, v)))
	}
	return table
}

func normalQuantile(p float64) float64 { return math.Sqrt2 * math.Erfinv(2*p-1) }

func paretoQuantile(p float64) float64 {
	const mean, deviation = 1.5, 0.8660254037844386 // sqrt(3/4)
	return (math.Pow(1-p, -1.0/3) - mean) / deviation
}
