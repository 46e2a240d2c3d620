package releases

import (
	"encoding/json"
	"regexp"
	"strings"

	"sigs.k8s.io/cluster-api/cmd/clusterctl/client/yamlprocessor"
)

// processor fills variables into components. A value that stands alone within quotes there, as in '${PASSWORD}', comes out as it is:
// clusterctl's own processor lets the value's quotes and backslashes end or change the text.
type processor struct{ yamlprocessor.Processor }

func newProcessor() processor { return processor{yamlprocessor.NewSimpleProcessor()} }

// Marks behind the names of variables within quotes; no variable ends in one.
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

// inSingleQuotes is how YAML writes a text between single quotes.
func inSingleQuotes(text string) string { return strings.ReplaceAll(text, "'", "''") }

// inDoubleQuotes is how JSON, and so YAML, writes a text between double quotes.
func inDoubleQuotes(text string) string {
	inJSON, err := json.Marshal(text)
	if err != nil { // no text is like that
		return text
	}
	return string(inJSON[1 : len(inJSON)-1])
}
