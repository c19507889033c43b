package conformance

// Departure is one way in which a provider does not do what the specification says.
type Departure struct {
	ID     string
	Spec   string // what the specification says, and where
	Actual string // what the provider does
	Source string // what makes it do so: kernel file and function, or commit
}

// departs says whether the provider declares a departure, and notes that a case came by it.
// The case then asserts what the departure says.
func (s *Suite) departs(id string) bool {
	for _, d := range s.provider.Departures {
		if d.ID == id {
			s.departed[id] = true
			return true
		}
	}
	return false
}

// CheckDepartures fails for each declared departure that no case has come by. It is for the
// end of a whole run.
func (s *Suite) CheckDepartures(t T) {
	t.Helper()
	for _, d := range s.provider.Departures {
		if !s.departed[d.ID] {
			t.Errorf("%s declares the departure %q, which no case knows", s.provider.Name, d.ID)
		}
	}
}

// The departures that cases know.
const (
	GRHOnEveryReceive     = "GRH flag on every receive"
	NoResponderEvent      = "no event for a responder's error"
	LongSendReceiveStatus = "status of a receive that was too short"
	BadReceiveStatus      = "status of a receive with a bad key"
	UDShortReceiveDropped = "UD datagram too long for its receive is dropped"
	NoCommEst             = "no event COMM_EST"
	WindowBoundsUnchecked = "window bounds are not checked"
)
