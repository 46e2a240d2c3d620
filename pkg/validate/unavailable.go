package validate

import (
	"fmt"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/diag"
)

// lack is a provider whose CRDs cannot be read, with its line in fleet.yaml.
type lack struct {
	provider v1alpha1.LockedComponent
	line     int
	err      error
}

// cause is why the CRDs cannot be read, without the words that tell the provider from others.
func (l lack) cause() string {
	return strings.TrimPrefix(firstLine(l.err.Error()), "find "+l.provider.String()+": ")
}

// unavailable returns one finding for all providers whose CRDs cannot be read for the same cause, at the first line of these.
func unavailable(all []lack) diag.Findings {
	var out diag.Findings
	names, at := map[string][]string{}, map[string]int{}
	var causes []string
	for _, l := range all {
		cause := l.cause()
		if line, told := at[cause]; !told {
			causes = append(causes, cause)
			at[cause] = l.line
		} else {
			at[cause] = min(line, l.line)
		}
		names[cause] = append(names[cause], fmt.Sprintf("%s provider %s", l.provider.Type, l.provider.Name))
	}
	for _, cause := range causes {
		whose, who := "its", names[cause][0]
		if len(names[cause]) > 1 {
			whose, who = "their", listOf(names[cause])
		}
		hint := "run it once with a network, or give --bundle, or --crds with a folder of CRDs"
		if cause == errNoVersion.Error() {
			hint = "`fleetctl init` chooses one and writes it; or write the version that you want beside the provider's name"
		}
		out = append(out, finding(RuleMissingCRDs, v1alpha1.FileName, at[cause], 0,
			fmt.Sprintf("the CRDs of the %s are not available, so %s objects are not checked: %s", who, whose, cause), hint))
	}
	return out
}
