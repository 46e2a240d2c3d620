package cmd

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/ui"
)

// A value from the environment or the configuration file is for many commands. Where it does not fit together with what was typed, the
// typed flag goes before it, and the value is dropped. Two typed flags that do not fit are an error.
func TestTypedFlagsGoBeforeValuesFromOutside(t *testing.T) {
	isolate(t)
	reach := func(f *factory) any { return f.flags.management + f.flags.kubeconfig + f.flags.context }
	loudness := func(f *factory) any { return list(f.flags.quiet, f.flags.verbose) }
	format := func(f *factory) any { return f.format }
	for name, tc := range map[string]struct {
		file, variable, value string
		line, refused         string
		get                   func(f *factory) any
		want                  any
	}{
		"status --all and a management cluster of the file": {
			file: "management: mgmt-aws", line: "status --all", get: reach, want: "",
		},
		"status --all and one of the environment": {
			variable: "FLEETCTL_MANAGEMENT", value: "mgmt-aws", line: "status --all", get: reach, want: "",
		},
		"status --all and a kubeconfig of the environment": {
			variable: "FLEETCTL_KUBECONFIG", value: "k", line: "status --all", get: reach, want: "",
		},
		"status and a management cluster of the file": {file: "management: mgmt-aws", line: "status", get: reach, want: "mgmt-aws"},
		"status --all and a typed one":                {line: "status --all --management mgmt-aws", refused: "--all shows every"},
		"status --all and a cluster":                  {line: "status --all shop", refused: "--all shows every"},
		"status --all and --watch":                    {line: "status --all --watch", refused: "--all shows every"},

		"a feature without a chart and a bundle of the file": {file: "bundle: b.tar.zst", line: "feature add ingress"},
		"a feature without a chart and a typed bundle": {
			line: "feature add ingress --bundle b", refused: "--bundle is about a chart",
		},
		"a feature without a chart and a typed version": {
			file: "bundle: b", line: "feature add ingress --version v1", refused: "--version is about a chart",
		},
		"connect --forget and a kubeconfig of the environment": {
			variable: "FLEETCTL_KUBECONFIG", value: "k", line: "connect --forget",
		},
		"connect --forget and a typed kubeconfig": {line: "connect --forget --kubeconfig k", refused: "--forget takes neither"},

		"quiet of the file and a typed --verbose": {file: "quiet: true", line: "status -v", get: loudness, want: list(false, true)},
		"quiet of the environment and a typed --verbose": {
			variable: "FLEETCTL_QUIET", value: "1", line: "status -v", get: loudness, want: list(false, true),
		},
		"quiet of the file and verbose of the environment": {
			file: "quiet: true", variable: "FLEETCTL_VERBOSE", value: "1", line: "status", get: loudness, want: list(false, true),
		},
		"verbose of the environment and a typed --quiet": {
			variable: "FLEETCTL_VERBOSE", value: "1", line: "status -q", get: loudness, want: list(true, false),
		},
		"both typed": {line: "status -q -v", refused: "opposites"},

		"wide of the environment and no list": {
			variable: "FLEETCTL_OUTPUT", value: "wide", line: "doctor", get: format, want: ui.Human,
		},
		"wide of the environment and a list": {
			variable: "FLEETCTL_OUTPUT", value: "wide", line: "credentials", get: format, want: ui.Wide,
		},
		"wide of the environment and validate": {
			variable: "FLEETCTL_OUTPUT", value: "wide", line: "validate", get: format, want: ui.Human,
		},
		"wide of the environment and the rules": {
			variable: "FLEETCTL_OUTPUT", value: "wide", line: "validate --rules", get: format, want: ui.Wide,
		},
		"names of rules":                          {line: "validate --rules -o name", get: format, want: ui.Name},
		"names of components":                     {line: "upgrade plan -o name", get: format, want: ui.Name},
		"names of logs":                           {line: "host logs -o name", get: format, want: ui.Name},
		"a format of validate, in a pipeline":     {variable: "FLEETCTL_OUTPUT", value: "github", line: "diff", get: format, want: ui.Human},
		"wide of the file and json of the line":   {file: "output: wide", line: "doctor -o json", get: format, want: ui.JSON},
		"wide of the line and no list":            {line: "doctor -o wide", refused: "unknown output format"},
		"a format that no command has":            {file: "output: xml", line: "doctor", refused: "unknown output format"},
		"a format that no command has, variables": {variable: "FLEETCTL_OUTPUT", value: "xml", line: "doctor", refused: "unknown output format"},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "config.yaml")
			if err := os.WriteFile(file, []byte(tc.file+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			if tc.variable != "" {
				t.Setenv(tc.variable, tc.value)
			}
			_, f, err := parsed(t, "", append([]string{"--config", file, "-C", exampleRepo}, strings.Fields(tc.line)...)...)
			if tc.refused != "" {
				if err == nil || !strings.Contains(err.Error(), tc.refused) || diag.Code(err) != diag.ExitUsage || diag.Hint(err) == "" {
					t.Fatalf("error %v (%s), want one with %q", err, diag.Hint(err), tc.refused)
				}
				return
			}
			if err != nil {
				t.Fatalf("%v (%s)", err, diag.Hint(err))
			}
			if tc.get == nil {
				return
			}
			if got := tc.get(f); !reflect.DeepEqual(got, tc.want) {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}
