package render

import (
	"encoding/base64"
	"maps"
	"math"
	"path"
	"reflect"
	"slices"
	"strings"

	"github.com/gobwas/glob"
	"helm.sh/helm/v4/pkg/chart/common"
)

// chartFiles are the files of a chart that are no templates, as templates see them. They replace the type of Helm's engine, which accepts
// patterns that take hours to compile or to match.
type chartFiles map[string][]byte

// bindFiles replaces the engine's files by chartFiles in the values of a chart's templates and of its inner charts.
func bindFiles(values any) {
	var fields map[string]any
	switch v := values.(type) {
	case common.Values:
		fields = v
	case map[string]any:
		fields = v
	default:
		return
	}
	files := reflect.ValueOf(fields["Files"])
	if own := reflect.TypeFor[chartFiles](); files.IsValid() && files.Type() != own && files.CanConvert(own) {
		fields["Files"] = files.Convert(own).Interface()
		if inner, ok := fields["Subcharts"].(map[string]any); ok {
			for _, below := range inner {
				bindFiles(below)
			}
		}
	}
}

// GetBytes returns the content of a file, or an empty slice if it does not exist.
func (f chartFiles) GetBytes(name string) []byte {
	if content, ok := f[name]; ok {
		return content
	}
	return []byte{}
}

// Get returns the content of a file as text.
func (f chartFiles) Get(name string) string { return string(f[name]) }

// The limits of a pattern.
const (
	maxPattern = 1000 // bytes
	maxMatches = 1e10 // ways to match it with one name
)

// Glob returns the files whose paths match a pattern. A pattern that would take too long is an error.
func (f chartFiles) Glob(pattern string) (chartFiles, error) {
	if len(pattern) > maxPattern {
		return nil, beyond("the pattern has %d bytes, and %d are the most", len(pattern), maxPattern)
	}
	longest := 0
	for name := range f {
		longest = max(longest, len(name))
	}
	ways, stars := 1.0, wildcards(pattern)
	for i := range stars {
		ways *= math.Max(1, float64(longest-i)/float64(i+1))
	}
	if ways > maxMatches {
		return nil, beyond("the pattern has %d wildcards behind one another: to hold it against a name of %d bytes takes too long",
			stars, longest)
	}
	g, err := glob.Compile(pattern, '/')
	if err != nil {
		g = glob.MustCompile("**") // as in Helm
	}
	out := chartFiles{}
	for name, content := range f {
		if g.Match(name) {
			out[name] = content
		}
	}
	return out, nil
}

// wildcards returns the number of wildcards in a row. Of alternatives it counts the one with most.
func wildcards(pattern string) int {
	at := 0
	var sequence func() int
	sequence = func() int {
		n := 0
		for ; at < len(pattern); at++ {
			switch pattern[at] {
			case '\\':
				at++
			case '*':
				n++
				for at+1 < len(pattern) && pattern[at+1] == '*' {
					at++
				}
			case '{':
				most := 0
				for at < len(pattern) && pattern[at] != '}' {
					at++
					most = max(most, sequence())
				}
				n += most
			case '}', ',':
				return n
			}
		}
		return n
	}
	total := 0
	for ; at < len(pattern); at++ { // outside of alternatives, a comma and a closing brace are plain characters
		total += sequence()
	}
	return total
}

// AsConfig returns YAML with a field for each file, called like the file without its folders.
func (f chartFiles) AsConfig() string {
	return f.fields(func(content []byte) string { return string(content) })
}

// AsSecrets is AsConfig with the content in base64.
func (f chartFiles) AsSecrets() string { return f.fields(base64.StdEncoding.EncodeToString) }

func (f chartFiles) fields(as func(content []byte) string) string {
	if f == nil {
		return ""
	}
	fields := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(f)) {
		fields[path.Base(name)] = as(f[name])
	}
	return toYAML()(fields)
}

// Lines returns the lines of a file.
func (f chartFiles) Lines(name string) []string {
	if len(f[name]) == 0 {
		return []string{}
	}
	return strings.Split(strings.TrimSuffix(string(f[name]), "\n"), "\n")
}
