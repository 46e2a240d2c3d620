package cmd

import (
	"bytes"
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/orphans"
	"github.com/fleetctl/fleetctl/pkg/ui"
)

// What is deleted in a cloud is deleted only after somebody has typed the names of the cluster and of each management cluster that is gone.
func TestAgreeToDeleteOrphans(t *testing.T) {
	const both = "mgmt\nshop\n"
	for name, test := range map[string]struct {
		answers    string
		noTerminal bool
		yes        bool
		gone       []string
		want, hint string
	}{
		"the name":                        {answers: "shop\n"},
		"the name between spaces":         {answers: "  shop \n"},
		"both names":                      {answers: both, gone: []string{"mgmt"}},
		"--yes":                           {noTerminal: true, yes: true, gone: []string{"mgmt"}},
		"another name":                    {answers: "shop2\n", want: `the answer was not "shop"`, hint: "nothing was changed"},
		"yes is no name":                  {answers: "yes\n", want: `the answer was not "shop"`, hint: "nothing was changed"},
		"an empty line":                   {answers: "\n", want: `the answer was not "shop"`, hint: "nothing was changed"},
		"another case":                    {answers: "Shop\n", want: `the answer was not "shop"`, hint: "nothing was changed"},
		"another management cluster":      {answers: "mgmt2\nshop\n", gone: []string{"mgmt"}, want: `the answer was not "mgmt"`, hint: "nothing"},
		"the cluster first":               {answers: "shop\nmgmt\n", gone: []string{"mgmt"}, want: `the answer was not "mgmt"`, hint: "nothing"},
		"the end of the input":            {answers: "", want: "the input ended before the answer", hint: "nothing was changed"},
		"the end in the middle of a name": {answers: "sho", want: "the input ended before the answer", hint: "nothing was changed"},
		"the end after one of two":        {answers: "mgmt\n", gone: []string{"mgmt"}, want: "the input ended before", hint: "nothing was changed"},
		"no terminal":                     {answers: both, noTerminal: true, want: "standard input is not a terminal", hint: "add --yes"},
	} {
		t.Run(name, func(t *testing.T) {
			var out, asked bytes.Buffer
			f := newFactory(ui.Streams{In: strings.NewReader(test.answers), Out: &out, Err: &asked, InTerminal: !test.noTerminal})
			err := f.agreeToDelete(&orphans.Deletion{Cluster: "shop"}, test.gone, !test.yes)
			if test.want == "" && err != nil {
				t.Fatalf("%v\n%s", err, asked.String())
			}
			if test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(diag.Hint(err), test.hint)) {
				t.Errorf("%v, hint %q; want %q, %q", err, diag.Hint(err), test.want, test.hint)
			}
			if out.Len() > 0 || !strings.Contains(asked.String(), "Deletes, in this order") {
				t.Errorf("the plan is not on standard error: %s%s", out.String(), asked.String())
			}
		})
	}
}
