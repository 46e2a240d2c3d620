// Package traces finds the bytes that betray a secret: a part of it is enough, in any of its forms. All tests that hide a canary look for
// it with this package.
package traces

import (
	"slices"

	"github.com/fleetctl/fleetctl/pkg/guises"
)

// length of the parts that are looked for. Shorter ones may stand in any content.
const length = 16

// Traces are the parts of secrets, all of the same length, so that one pass finds any of them.
type Traces struct {
	parts  map[string]bool
	begins [1 << 16]bool // by the first two bytes of a part
}

// Of returns the traces of secrets, each of which must have 16 bytes or more.
func Of(secrets ...string) *Traces {
	tr := &Traces{parts: map[string]bool{}}
	for _, secret := range secrets {
		if len(secret) < length {
			panic("a canary of less than 16 bytes is never found")
		}
		reversed := []byte(secret)
		slices.Reverse(reversed)
		for _, form := range slices.Concat([]string{secret, string(reversed)}, guises.Escaped(secret), guises.Encoded(secret)) {
			tr.add(form)
			tr.add(string(guises.Joined([]byte(form))))
		}
	}
	return tr
}

func (tr *Traces) add(text string) {
	for i := 0; i+length <= len(text); i++ {
		tr.parts[text[i:i+length]] = true
		tr.begins[uint16(text[i])<<8|uint16(text[i+1])] = true
	}
}

// In tells whether content has a trace, also one that is broken into lines.
func (tr *Traces) In(content []byte) bool { return tr.scan(content) || tr.scan(guises.Joined(content)) }

func (tr *Traces) scan(content []byte) bool {
	for i := 0; i+length <= len(content); i++ {
		if tr.begins[uint16(content[i])<<8|uint16(content[i+1])] && tr.parts[string(content[i:i+length])] {
			return true
		}
	}
	return false
}
