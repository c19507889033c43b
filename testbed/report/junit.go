package report

import (
	"encoding/xml"
	"fmt"
	"strings"

	"github.com/rocebed/rocebed/testbed/record"
)

type junitSuite struct {
	XMLName    xml.Name        `xml:"testsuite"`
	Name       string          `xml:"name,attr"`
	Tests      int             `xml:"tests,attr"`
	Failures   int             `xml:"failures,attr"`
	Time       string          `xml:"time,attr"`
	Properties []junitProperty `xml:"properties>property"`
	Cases      []junitCase     `xml:"testcase"`
}

type junitProperty struct {
	Name  string `xml:"name,attr"`
	Value string `xml:"value,attr"`
}

type junitCase struct {
	Name    string        `xml:"name,attr"`
	Class   string        `xml:"classname,attr"`
	Failure *junitFailure `xml:"failure,omitempty"`
}

type junitFailure struct {
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

// JUnit is the summary as a JUnit test suite: one case a workload, a fault and an
// expectation, and one for the run itself, which holds its problems.
func JUnit(s *record.Summary) ([]byte, error) {
	suite := junitSuite{Name: s.Name, Time: fmt.Sprintf("%.3f", s.Wall.Seconds()), Properties: []junitProperty{
		{"backend", s.Backend}, {"guest", fmt.Sprint(s.Guest)}, {"dilation", s.Slowed()}, {"dilation_named", s.DilationNamed},
		{"seed", fmt.Sprint(s.Seed)}, {"hash", s.Hash},
	}}
	add := func(class, name string, ok bool, message, text string) {
		c := junitCase{Name: name, Class: s.Name + "." + class}
		if !ok {
			c.Failure = &junitFailure{Message: message, Text: text}
			suite.Failures++
		}
		suite.Cases = append(suite.Cases, c)
	}
	add("run", s.Name, len(s.Problems) == 0, "the run has problems", strings.Join(s.Problems, "\n"))
	for _, x := range s.Workloads {
		add("workload", x.Name, x.Passed, strings.Join(x.Statuses, ", "), strings.Join(x.Problems, "\n"))
	}
	for _, x := range s.Faults {
		add("fault", x.Name, len(x.Problems) == 0, "the fault has problems", strings.Join(x.Problems, "\n"))
	}
	for _, x := range s.Expectations {
		add("expect", x.Expr, x.Passed, "the expectation does not hold", x.String())
	}
	suite.Tests = len(suite.Cases)
	b, err := xml.MarshalIndent(suite, "", "  ")
	return append([]byte(xml.Header), append(b, '\n')...), err
}
