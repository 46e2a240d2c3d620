package capi

import (
	"encoding/base64"
	"strings"
)

// leastHidden is the length from which on a value, or a line of one, is looked for in errors: what is shorter stands in many a word.
const leastHidden = 5

// hidingError is one whose text may have values of variables in it: an API server quotes what it does not take.
type hidingError struct {
	error
	values *strings.Replacer
}

// Unwrap returns the error as it was.
func (e *hidingError) Unwrap() error { return e.error }

// Error has the names of the variables where the values were.
func (e *hidingError) Error() string { return e.values.Replace(e.error.Error()) }

// hiding is err without the values that the Source was given. It goes around nothing but what talks of components.
func (s *Source) hiding(err error) error {
	if err == nil {
		return nil
	}
	var pairs []string
	add := func(name, value string) {
		if len(value) >= leastHidden && value != "false" {
			pairs = append(pairs, value, "[value of "+name+"]")
		}
	}
	for name, value := range s.options.Variables {
		add(name, value)
		add(name, base64.StdEncoding.EncodeToString([]byte(value)))
		if decoded, err := base64.StdEncoding.DecodeString(value); err == nil {
			value += "\n" + string(decoded)
		}
		if !strings.Contains(value, "\n") {
			continue
		}
		for line := range strings.Lines(value) {
			add(name, strings.TrimSpace(line))
		}
	}
	if len(pairs) == 0 {
		return err
	}
	return &hidingError{err, strings.NewReplacer(pairs...)}
}
