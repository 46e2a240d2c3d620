package releases

import (
	"cmp"
	"encoding/base64"
	"encoding/hex"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// leastHidden is the minimum length of a value, or of a line of a value, to search for in errors. Shorter ones are part of many words.
const leastHidden = 5

// hidingError is an error that does not show values of variables. It is needed because an API server quotes the values that it refuses.
type hidingError struct {
	error
	values *strings.Replacer
}

// Unwrap returns the original error.
func (e *hidingError) Unwrap() error { return e.error }

// Error has the names of the variables instead of their values.
func (e *hidingError) Error() string { return e.values.Replace(e.error.Error()) }

// Hiding returns err without the values that the Source was given. Use it only for errors about components.
func (s *Source) Hiding(err error) error {
	if err == nil {
		return nil
	}
	hidden := map[string]string{}
	add := func(name, value string) {
		if value == "false" {
			return
		}
		for _, written := range spellings(value) {
			if len(written) >= leastHidden {
				hidden[written] = name
			}
		}
	}
	for name, value := range s.options.Variables {
		add(name, value)
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
	if len(hidden) == 0 {
		return err
	}
	longestFirst := slices.SortedFunc(maps.Keys(hidden), func(a, b string) int { // a value may begin with another value
		return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b))
	})
	pairs := make([]string, 0, 2*len(hidden))
	for _, value := range longestFirst {
		pairs = append(pairs, value, "[value of "+hidden[value]+"]")
	}
	return &hidingError{err, strings.NewReplacer(pairs...)}
}

// spellings returns the forms in which an error may write a value: plain, quoted and encoded.
func spellings(value string) []string {
	quoted := strconv.Quote(value)
	return []string{
		value, quoted[1 : len(quoted)-1], inDoubleQuotes(value), inSingleQuotes(value),
		base64.StdEncoding.EncodeToString([]byte(value)), base64.RawStdEncoding.EncodeToString([]byte(value)),
		base64.URLEncoding.EncodeToString([]byte(value)), hex.EncodeToString([]byte(value)), url.QueryEscape(value), url.PathEscape(value),
	}
}
