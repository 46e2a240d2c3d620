package converge

import (
	"fmt"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/capi"
)

// Renewed is a provider whose variables had other values than its management cluster: credentials that were changed, a feature that was
// turned on.
type Renewed struct {
	Name string `json:"name"`
	Type string `json:"type"`
	// Variables that changed, never their values.
	Variables []string `json:"variables"`
	// Objects that have them, and Restarted, the Deployments that were started again because they read them only then.
	Objects   []string `json:"objects,omitempty"`
	Restarted []string `json:"restarted,omitempty"`
}

// String is "AWS_B64ENCODED_CREDENTIALS of infrastructure provider aws, which was started again".
func (r Renewed) String() string {
	text := fmt.Sprintf("%s of %s provider %s", strings.Join(r.Variables, ", "), r.Type, r.Name)
	if len(r.Variables) == 0 {
		text = fmt.Sprintf("%s provider %s", r.Type, r.Name)
	}
	if len(r.Restarted) > 0 {
		text += ", which was started again to read it"
	}
	return text
}

func renewedOf(all []capi.Renewed) []Renewed {
	var out []Renewed
	for _, r := range all {
		out = append(out, Renewed{
			Name: r.Name, Type: string(r.Type), Variables: append([]string{}, r.Variables...), Objects: r.Objects, Restarted: r.Restarted,
		})
	}
	return out
}
