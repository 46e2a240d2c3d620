package config

import (
	"regexp"
	"testing"

	"github.com/spf13/pflag"
	"sigs.k8s.io/yaml"
)

// lineBreak is what ends a line for a YAML parser.
var lineBreak = regexp.MustCompile("\r\n|[\r\n\u0085\u2028\u2029]")

// For every configuration file: each problem has a place, and a file without problems is read as a YAML library reads it.
func FuzzFile(f *testing.F) {
	f.Add([]byte("output: json\nyes: true\ntimeout: 90s\nskip-preflight: [disk, memory]\nrepo: ~/fleet # here\n"))
	f.Add([]byte("output: json\noutput: yaml\nyes: maybe\ntimeout: soon\nskip-preflight: disk\nrepos: x\nrepo:\n"))
	f.Add([]byte("repo: &a x\ncluster: *a\n<<: {yes: true}\n? [a]\n: b\n---\nrepo: y\n"))
	f.Add([]byte("- a\n"))
	f.Fuzz(func(t *testing.T, content []byte) {
		file := &configFile{path: "config.yaml", values: map[string]any{}, lines: map[string]int{}}
		file.parse(content)
		lines := len(lineBreak.FindAllString(string(content), -1)) + 1
		for _, found := range file.findings {
			if found.Line < 1 || found.Line > lines || found.Summary == "" {
				t.Errorf("%v is no place in %d lines", found, lines)
			}
		}
		if len(file.findings) > 0 || len(file.values) == 0 {
			return
		}
		var want map[string]any
		if err := yaml.UnmarshalStrict(content, &want); err != nil {
			t.Fatalf("taken for right, and to the library: %v", err)
		}
		if len(want) != len(file.values) {
			t.Fatalf("settled %v of %v", file.values, want)
		}
		flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
		flags.Duration("timeout", 0, "")
		flags.Bool("yes", false, "")
		flags.StringSlice("skip-preflight", nil, "")
		flags.String("output", "", "")
		for name, value := range file.values {
			got, err := convert(value, fileKeys[name])
			if err != nil {
				t.Errorf("%s is %v, but: %v", name, value, err)
			}
			if flag := flags.Lookup(name); flag != nil {
				if err := set(flags, flag, got); err != nil {
					t.Errorf("%s is %v, but: %v", name, value, err)
				}
			}
		}
	})
}
