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

// leastHidden is the length from which on a value, or a line of one, is looked for in errors: what is shorter stands in many a word.
const leastHidden = 5

// hidingError is an error whose text may contain values of variables: an API server quotes the values that it refuses.
type hidingError struct {
	error
	values *strings.Replacer
}

// Unwrap returns the error as it was.
func (e *hidingError) Unwrap() error { return e.error }

// Error has the names of the variables where the values were.
func (e *hidingError) Error() string { return e.values.Replace(e.error.Error()) }

// Hiding is err without the values that the Source was given. It goes around nothing but what talks of components.
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
	longestFirst := slices.SortedFunc(maps.Keys(hidden), func(a, b string) int { // where one begins with another one
		return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b))
	})
	pairs := make([]string, 0, 2*len(hidden))
	for _, value := range longestFirst {
		pairs = append(pairs, value, "[value of "+hidden[value]+"]")
	}
	return &hidingError{err, strings.NewReplacer(pairs...)}
}

// spellings are the ways in which an error may write a value: as it is, quoted, and encoded.
func spellings(value string) []string {
	quoted := strconv.Quote(value)
	return []string{
		value, quoted[1 : len(quoted)-1], inDoubleQuotes(value), inSingleQuotes(value),
		base64.StdEncoding.EncodeToString([]byte(value)), base64.RawStdEncoding.EncodeToString([]byte(value)),
		base64.URLEncoding.EncodeToString([]byte(value)), hex.EncodeToString([]byte(value)), url.QueryEscape(value), url.PathEscape(value),
	}
}
