package releases

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"

	"sigs.k8s.io/cluster-api/cmd/clusterctl/client/yamlprocessor"
)

// processor fills variables into components. A value that is alone within quotes there, as in '${PASSWORD}', is escaped, so that its text
// stays unchanged. In clusterctl's own processor, quotes and backslashes of a value end or change the text.
type processor struct{ yamlprocessor.Processor }

func newProcessor() processor { return processor{yamlprocessor.NewSimpleProcessor()} }

// The marks after the names of variables within quotes. No real variable ends in a mark.
const (
	markSingle = "__WITHIN_SINGLE_QUOTES"
	markDouble = "__WITHIN_DOUBLE_QUOTES"
)

var (
	withinSingle = regexp.MustCompile(`'\$\{([A-Za-z0-9_]+)((?::?=[^}'"]*)?)\}'`)
	withinDouble = regexp.MustCompile(`"\$\{([A-Za-z0-9_]+)((?::?=[^}'"]*)?)\}"`)
)

// Process implements yamlprocessor.Processor.
func (p processor) Process(raw []byte, value func(string) (string, error)) ([]byte, error) {
	if bytes.IndexByte(raw, 0) >= 0 {
		return p.process(raw, value) // envsubst takes a zero byte for the end
	}
	parts := bytes.SplitAfter(raw, partEnd)
	for i, part := range parts {
		if !namesVariables(part) {
			parts[i] = bytes.ReplaceAll(part, []byte("$$"), []byte("$")) // as envsubst does
			continue
		}
		var err error
		if parts[i], err = p.process(part, value); err != nil {
			return p.process(raw, value) // the error is about all of the text
		}
	}
	return bytes.Join(parts, nil), nil
}

// GetVariables implements yamlprocessor.Processor.
func (p processor) GetVariables(raw []byte) ([]string, error) {
	names, err := p.Processor.GetVariables(withVariables(raw))
	if err != nil {
		return p.Processor.GetVariables(raw)
	}
	return names, nil
}

// GetVariableMap implements yamlprocessor.Processor.
func (p processor) GetVariableMap(raw []byte) (map[string]*string, error) {
	named, err := p.Processor.GetVariableMap(withVariables(raw))
	if err != nil {
		return p.Processor.GetVariableMap(raw)
	}
	return named, nil
}

// partEnd ends a part of a file: here a YAML document ends too. Nearly all of the text is in parts without variables. clusterctl's
// processor would take a second for the components of a few providers, so it does not get these parts.
var partEnd = []byte("\n---")

// withVariables returns the parts of a file that name variables.
func withVariables(raw []byte) []byte {
	var all []byte
	for part := range bytes.SplitAfterSeq(raw, partEnd) {
		if namesVariables(part) || bytes.IndexByte(part, 0) >= 0 {
			all = append(all, part...)
		}
	}
	return all
}

func (p processor) process(raw []byte, value func(string) (string, error)) ([]byte, error) {
	marked := withinSingle.ReplaceAll(raw, []byte(`'$${${1}`+markSingle+`${2}}'`))
	marked = withinDouble.ReplaceAll(marked, []byte(`"$${${1}`+markDouble+`${2}}"`))
	return p.Processor.Process(marked, func(name string) (string, error) {
		if name, is := strings.CutSuffix(name, markSingle); is {
			text, err := value(name)
			return inSingleQuotes(text), err
		}
		name, is := strings.CutSuffix(name, markDouble)
		text, err := value(name)
		if is && strings.ContainsFunc(text, func(r rune) bool { return r == '"' || r == '\\' || r < ' ' }) {
			text = inDoubleQuotes(text)
		}
		return text, err
	})
}

// inSingleQuotes returns a text as YAML writes it between single quotes.
func inSingleQuotes(text string) string { return strings.ReplaceAll(text, "'", "''") }

// inDoubleQuotes returns a text as JSON, and so YAML, writes it between double quotes.
func inDoubleQuotes(text string) string {
	inJSON, err := json.Marshal(text)
	if err != nil { // encoding a string does not fail
		return text
	}
	return string(inJSON[1 : len(inJSON)-1])
}
