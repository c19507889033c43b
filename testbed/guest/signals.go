package guest

import "golang.org/x/crypto/ssh"

// transport is how both ends set up SSH. ChaCha20 and AES-GCM cost an emulated processor
// the same, about 12 MB/s when it is idle; the machine's end may lack AES instructions.
var transport = ssh.Config{
	KeyExchanges: []string{ssh.KeyExchangeCurve25519},
	Ciphers:      []string{ssh.CipherChaCha20Poly1305},
	// A connection lives as long as a run; new keys in its midst would only cost time.
	RekeyThreshold: 1 << 40,
}

// linuxSignals are the guest's signal numbers, whatever the machine's system is
// (include/uapi/asm-generic/signal.h).
var linuxSignals = map[string]int{
	"HUP": 1, "INT": 2, "QUIT": 3, "ILL": 4, "TRAP": 5, "ABRT": 6, "BUS": 7, "FPE": 8, "KILL": 9, "USR1": 10,
	"SEGV": 11, "USR2": 12, "PIPE": 13, "ALRM": 14, "TERM": 15, "CHLD": 17, "CONT": 18, "STOP": 19, "TSTP": 20,
	"TTIN": 21, "TTOU": 22, "WINCH": 28, "SYS": 31,
}

// signalNumber is the number of a signal by its name without SIG; 0 if unknown.
func signalNumber(name string) int { return linuxSignals[name] }

// signalName is the other way round.
func signalName(number int) string {
	for name, n := range linuxSignals {
		if n == number {
			return name
		}
	}
	return "UNKNOWN"
}
