package expect

import (
	"fmt"
	"math"
	"reflect"
	"strings"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/ext"

	"github.com/rocebed/rocebed/testbed/metrics"
	"github.com/rocebed/rocebed/topo"
)

// Env compiles and evaluates the expectations of one scenario.
type Env struct {
	names Names
	cel   *cel.Env

	mu    sync.Mutex // held while an expression is evaluated
	table *metrics.Table
}

// NewEnv makes the environment in which a scenario's names are known.
func NewEnv(names Names) (*Env, error) {
	e := &Env{names: names}
	opts := []cel.EnvOption{
		ext.NativeTypes(append(seen, ext.ParseStructTags(true))...),
		cel.Variable("workloads", cel.MapType(cel.StringType, cel.ObjectType("record.Workload"))),
		cel.Variable("faults", cel.MapType(cel.StringType, cel.ObjectType("record.Fault"))),
		cel.CrossTypeNumericComparisons(true),
		cel.Function("rate", unary("rate_string", func(s string) (int64, error) { r, err := topo.ParseRate(s); return int64(r), err })),
		cel.Function("bytesize", unary("bytesize_string", func(s string) (int64, error) { b, err := topo.ParseBytes(s); return int64(b), err })),
		cel.Function("share", cel.Overload("share_string", []*cel.Type{cel.StringType}, cel.DoubleType, cel.UnaryBinding(func(v ref.Val) ref.Val {
			f, err := topo.ParseFraction(string(v.(types.String)))
			if err != nil {
				return types.WrapErr(err)
			}
			return types.Double(f)
		}))),
	}
	for name, fn := range metricFunctions {
		opts = append(opts, e.metricFunction(name, fn))
	}
	var err error
	if e.cel, err = cel.NewEnv(opts...); err != nil {
		return nil, fmt.Errorf("expectations: %w", err)
	}
	return e, nil
}

func unary(id string, parse func(string) (int64, error)) cel.FunctionOpt {
	return cel.Overload(id, []*cel.Type{cel.StringType}, cel.IntType, cel.UnaryBinding(func(v ref.Val) ref.Val {
		n, err := parse(string(v.(types.String)))
		if err != nil {
			return types.WrapErr(err)
		}
		return types.Int(n)
	}))
}

// metricFunctions reduce the series that a call selects to one number.
var metricFunctions = map[string]func([]*metrics.Series) float64{
	"delta": func(all []*metrics.Series) float64 { return sum(all, (*metrics.Series).Delta) },
	"before": func(all []*metrics.Series) float64 {
		return sum(all, func(s *metrics.Series) float64 { return s.Before })
	},
	"after": func(all []*metrics.Series) float64 {
		return sum(all, func(s *metrics.Series) float64 { return s.After })
	},
	"max": func(all []*metrics.Series) float64 {
		m := math.Inf(-1)
		for _, s := range all {
			m = max(m, s.Max())
		}
		return m
	},
	"min": func(all []*metrics.Series) float64 {
		m := math.Inf(1)
		for _, s := range all {
			m = min(m, s.Min())
		}
		return m
	},
	"mean": func(all []*metrics.Series) float64 { return sum(all, (*metrics.Series).Mean) / float64(len(all)) },
}

func sum(all []*metrics.Series, of func(*metrics.Series) float64) (total float64) {
	for _, s := range all {
		total += of(s)
	}
	return total
}

// metricFunction declares name(metric) and name(metric, labels). All give an int (counts,
// bytes and nanoseconds are whole) but mean, which gives a double.
func (e *Env) metricFunction(name string, reduce func([]*metrics.Series) float64) cel.EnvOption {
	result := cel.IntType
	if name == "mean" {
		result = cel.DoubleType
	}
	eval := func(args ...ref.Val) ref.Val {
		labels := map[string]string{}
		if len(args) == 2 {
			native, err := args[1].ConvertToNative(reflect.TypeFor[map[string]string]())
			if err != nil {
				return types.WrapErr(err)
			}
			labels = native.(map[string]string)
		}
		metric := string(args[0].(types.String))
		all, err := e.table.Select(metric, labels)
		switch {
		case err != nil:
			return types.WrapErr(err)
		case len(all) == 0:
			hint := ""
			if ours, how, known := metrics.Elsewhere(metric); known && ours != "" {
				hint = strings.TrimSuffix(fmt.Sprintf(" (every backend has %s, %s", ours, how), ", ") + ")"
			}
			return types.NewErr("no series of %s matches %v: this backend doesn't measure it, or no such node%s", metric, labels, hint)
		}
		if name == "delta" || name == "after" {
			for _, s := range all {
				if !s.Complete() {
					return types.NewErr("%s of %s was not read after the run, so it has no %s", metric, strings.Join(s.Labels, ":"), name)
				}
			}
		}
		if v := reduce(all); name == "mean" {
			return types.Double(v)
		} else {
			return types.Int(math.Round(v))
		}
	}
	return cel.Function(name,
		cel.Overload(name+"_string", []*cel.Type{cel.StringType}, result, cel.FunctionBinding(eval)),
		cel.Overload(name+"_string_map", []*cel.Type{cel.StringType, cel.MapType(cel.StringType, cel.StringType)}, result, cel.FunctionBinding(eval)),
	)
}
