// Package config settles what each flag of a command is: what was typed, else the environment (FLEETCTL_* with the flag's name in
// upper case), else the user's configuration file, else the default; and remembers where each value came from.
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

// Setting is one key with the value that is in force.
type Setting struct {
	// Key is the name of the flag and in the configuration file.
	Key string `json:"key"`
	// Value is text, a bool, or a list of texts.
	Value any `json:"value"`
	// Origin says where the value comes from: "flag --x", "environment FLEETCTL_X", "file path:line" or "default".
	Origin string `json:"origin"`
}

// Settings are the values in force for one run.
type Settings struct {
	byKey map[string]resolved
}

// resolved is a Setting with what Apply needs.
type resolved struct {
	Setting
	fromOutside bool // from the environment or the file
}

// EnvName is the environment variable of a flag: FLEETCTL_STATE_DIR for state-dir.
func EnvName(flag string) string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// DefaultFile is where the configuration file stands if --config does not say so: fleetctl/config.yaml below $XDG_CONFIG_HOME, or the
// system's folder for configuration. It is "" where there is no such folder.
func DefaultFile() string {
	dir := os.Getenv("XDG_CONFIG_HOME")
	if !filepath.IsAbs(dir) { // the specification says to ignore a relative one
		var err error
		if dir, err = os.UserConfigDir(); err != nil {
			return ""
		}
	}
	return filepath.Join(dir, "fleetctl", "config.yaml")
}

// Load settles flags, which have been parsed, against the environment and the configuration file. An empty configFile stands for
// FLEETCTL_CONFIG, else for DefaultFile, which need not exist. It returns all that is wrong in the file as diag.Findings, and an
// error for a variable whose value does not fit. Nothing is changed yet: see Apply.
func Load(flags *pflag.FlagSet, configFile string) (*Settings, error) {
	file, err := openFile(configFile)
	if err != nil {
		return nil, err
	}
	for old, now := range renamed {
		if os.Getenv(EnvName(old)) != "" {
			return nil, diag.Usage("unset it, and set "+EnvName(now)+" instead", "the environment variable %s has another name now", EnvName(old))
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

// bind tells viper where the values of a key may come from; viper knows which of them wins.
func bind(v *viper.Viper, name string, flag *pflag.Flag) error {
	if err := v.BindEnv(name, EnvName(name)); err != nil {
		return fmt.Errorf("bind %s: %w", EnvName(name), err)
	}
	if flag == nil { // a key of other commands
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
		r.Origin = "flag --" + name
	case os.Getenv(EnvName(name)) != "": // an empty one is as none
		r.Origin, r.fromOutside = "environment "+EnvName(name), true
	case inFile:
		r.Origin, r.fromOutside = fmt.Sprintf("file %s:%d", file.path, line), true
	}
	value, err := convert(v.Get(name), kindOf(name, flag))
	if err != nil {
		return r, diag.Usage("", "%s: %w", r.Origin, err)
	}
	r.Value = value
	return r, nil
}

// kindOf is the kind of a key, by the table or, for one that only the environment may set, by its flag.
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

// convert brings what viper found, a text where it comes from the environment, into the form of its kind.
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

// toList takes a list as it is, and a text from the environment as items with commas between them.
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

// Apply sets each flag that was not typed to what the environment or the file says, so that commands only read their options.
// The flags count as given from then on. It returns an error that names the origin of a value which a flag refuses.
func (s *Settings) Apply(flags *pflag.FlagSet) error {
	var failed error
	flags.VisitAll(func(f *pflag.Flag) {
		r, known := s.byKey[f.Name]
		if failed != nil || !known || !r.fromOutside || f.Changed {
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

// All returns the keys of the configuration file, and those flags of any command that the environment sets, sorted.
func (s *Settings) All() []Setting {
	all := []Setting{}
	for key, r := range s.byKey {
		if _, inFile := fileKeys[key]; inFile || r.fromOutside {
			all = append(all, r.Setting)
		}
	}
	slices.SortFunc(all, func(a, b Setting) int { return strings.Compare(a.Key, b.Key) })
	return all
}
