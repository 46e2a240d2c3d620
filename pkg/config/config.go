// Package config decides the value of each flag of a command. The command line comes first, then the environment (FLEETCTL_* with the
// flag's name in upper case), then the user's configuration file, then the default. The package also records where each value came from.
package config

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"github.com/spf13/viper"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

const (
	envPrefix     = "FLEETCTL_"
	originDefault = "default"
)

// Setting is one key with its effective value.
type Setting struct {
	// Key is the name of the flag, which is also the key in the configuration file.
	Key string `json:"key"`
	// Value is text, a bool, or a list of texts.
	Value any `json:"value"`
	// Origin says where the value comes from: "flag --x", "environment FLEETCTL_X", "file path:line" or "default".
	Origin string `json:"origin"`
}

// Settings are the effective values of one run.
type Settings struct {
	byKey map[string]resolved
}

// resolved is a Setting with the source of its value.
type resolved struct {
	Setting
	source source
}

// source is where a value comes from. A greater source wins over a smaller one.
type source int

const (
	fromDefault source = iota
	fromFile
	fromEnvironment
	fromCommandLine
)

// outside tells whether the value comes from the environment or the file.
func (r *resolved) outside() bool { return r.source == fromEnvironment || r.source == fromFile }

// EnvName is the environment variable of a flag: FLEETCTL_STATE_DIR for state-dir.
func EnvName(flag string) string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// DefaultFile is the default path of the configuration file: fleetctl/config.yaml below $XDG_CONFIG_HOME, or else below the system's
// folder for configuration. It is "" if there is no such folder.
func DefaultFile() string {
	dir := os.Getenv("XDG_CONFIG_HOME")
	if !filepath.IsAbs(dir) { // the XDG specification: ignore a relative path
		var err error
		if dir, err = os.UserConfigDir(); err != nil {
			return ""
		}
	}
	return filepath.Join(dir, "fleetctl", "config.yaml")
}

// Load decides the values of parsed flags from the environment and the configuration file. An empty configFile means FLEETCTL_CONFIG, or
// else DefaultFile, which need not exist. All faults of the file are diag.Findings. A variable with a value that does not fit is an
// error, too. Load does not change flags: see Apply.
func Load(flags *pflag.FlagSet, configFile string) (*Settings, error) {
	file, err := openFile(configFile)
	if err != nil {
		return nil, err
	}
	for old, now := range renamed {
		if os.Getenv(EnvName(old)) != "" {
			return nil, diag.Usage("unset it, and set "+EnvName(now)+" instead", "the environment variable %s was renamed", EnvName(old))
		}
	}
	v := viper.New()
	if err := v.MergeConfigMap(file.values); err != nil {
		return nil, diag.Wrap("read configuration "+file.path, err, "")
	}
	names := Keys()
	flags.VisitAll(func(f *pflag.Flag) {
		if _, known := fileKeys[f.Name]; !known && !slices.Contains(flagOnly, f.Name) {
			names = append(names, f.Name)
		}
	})
	s := &Settings{byKey: make(map[string]resolved, len(names))}
	for _, name := range names {
		flag := flags.Lookup(name)
		if err := bind(v, name, flag); err != nil {
			return nil, err
		}
		r, err := resolve(v, name, flag, file)
		if err != nil {
			return nil, err
		}
		s.byKey[name] = r
	}
	return s, nil
}

// bind tells viper the sources of a key's value. viper decides their order.
func bind(v *viper.Viper, name string, flag *pflag.Flag) error {
	if err := v.BindEnv(name, EnvName(name)); err != nil {
		return fmt.Errorf("bind %s: %w", EnvName(name), err)
	}
	if flag == nil { // a key for other commands
		return nil
	}
	if err := v.BindPFlag(name, flag); err != nil {
		return fmt.Errorf("bind --%s: %w", name, err)
	}
	return nil
}

func resolve(v *viper.Viper, name string, flag *pflag.Flag, file *configFile) (resolved, error) {
	r := resolved{Setting: Setting{Key: name, Origin: originDefault}}
	line, inFile := file.lines[name]
	switch {
	case flag != nil && flag.Changed:
		r.Origin, r.source = "flag --"+name, fromCommandLine
	case os.Getenv(EnvName(name)) != "": // an empty variable counts as unset
		r.Origin, r.source = "environment "+EnvName(name), fromEnvironment
	case inFile:
		r.Origin, r.source = fmt.Sprintf("file %s:%d", file.path, line), fromFile
	}
	k := kindOf(name, flag)
	value, err := convert(v.Get(name), k)
	if err != nil {
		return r, diag.Usage("give it "+string(k)+", or remove it", "%s: %w", r.Origin, err)
	}
	r.Value = value
	return r, nil
}

// kindOf is the kind of a key. For a key that only the environment may set, it is the kind of the flag.
func kindOf(name string, flag *pflag.Flag) kind {
	if k, known := fileKeys[name]; known {
		return k
	}
	if _, isList := flag.Value.(pflag.SliceValue); isList {
		return kindList
	}
	switch flag.Value.Type() {
	case "bool":
		return kindBool
	case "duration":
		return kindDuration
	}
	return kindText
}

// convert converts a value from viper to its kind. Values from the environment are texts.
func convert(value any, k kind) (any, error) {
	switch k {
	case kindList:
		return toList(value), nil
	case kindBool:
		switch value := value.(type) {
		case nil:
			return false, nil
		case bool:
			return value, nil
		}
		b, err := strconv.ParseBool(fmt.Sprint(value))
		if err != nil {
			return nil, fmt.Errorf("%q is not %s", value, k)
		}
		return b, nil
	case kindDuration:
		if value == nil || value == "" {
			return "", nil
		}
		text := fmt.Sprint(value)
		if _, err := time.ParseDuration(text); err != nil {
			return nil, fmt.Errorf("%q is not %s", text, k)
		}
		return text, nil
	case kindText:
	}
	if value == nil {
		return "", nil
	}
	return fmt.Sprint(value), nil
}

// toList returns a list as it is. It splits a text from the environment at commas.
func toList(value any) []string {
	list := []string{}
	switch value := value.(type) {
	case []string:
		list = append(list, value...)
	case []any:
		for _, item := range value {
			list = append(list, fmt.Sprint(item))
		}
	case string:
		for item := range strings.SplitSeq(value, ",") {
			if item = strings.TrimSpace(item); item != "" {
				list = append(list, item)
			}
		}
	}
	return list
}

// FromOutside tells whether the value of a flag comes from the environment or from the configuration file.
func (s *Settings) FromOutside(flag string) bool {
	r := s.byKey[flag]
	return r.outside()
}

// Prevails tells whether the value of a flag comes from a source that wins over the source of another flag's value.
func (s *Settings) Prevails(flag, over string) bool {
	return s.byKey[flag].source > s.byKey[over].source
}

// Apply sets each flag that is not on the command line to its value from the environment or the file, so that commands only read their
// options. These flags then count as given. If a flag refuses a value, the error names the value's origin.
func (s *Settings) Apply(flags *pflag.FlagSet) error {
	var failed error
	flags.VisitAll(func(f *pflag.Flag) {
		r, known := s.byKey[f.Name]
		if failed != nil || !known || !r.outside() || f.Changed {
			return
		}
		if err := set(flags, f, r.Value); err != nil {
			failed = diag.Usage("see the help of --"+f.Name, "%s does not fit --%s: %w", r.Origin, f.Name, err)
		}
	})
	return failed
}

func set(flags *pflag.FlagSet, f *pflag.Flag, value any) error {
	items, isList := value.([]string)
	slice, takesList := f.Value.(pflag.SliceValue)
	if isList && takesList {
		f.Changed = true
		return slice.Replace(items)
	}
	return flags.Set(f.Name, fmt.Sprint(value))
}

// All returns the keys that the configuration file may have, and the flags that the environment sets, sorted by key.
func (s *Settings) All() []Setting {
	all := []Setting{}
	for key, r := range s.byKey {
		if _, inFile := fileKeys[key]; inFile || r.outside() {
			all = append(all, r.Setting)
		}
	}
	slices.SortFunc(all, func(a, b Setting) int { return strings.Compare(a.Key, b.Key) })
	return all
}
