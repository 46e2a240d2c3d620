package gitrepo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/go-git/gcfg"

	"github.com/fleetctl/fleetctl/pkg/gitrepo/internal/conversion"
	"github.com/fleetctl/fleetctl/pkg/gitrepo/internal/pattern"
	"github.com/fleetctl/fleetctl/pkg/within"
)

// settings are git's configuration. If a variable is set several times, the last value counts.
type settings map[string]string

// on tells whether a variable is true, as git reads it.
func (s settings) on(name string) bool {
	return conversion.Settings(s).On(name)
}

// settings reads git's configuration. It asks git, or, if git is not installed, reads the files that git would read. If git refuses to work
// in the repository, the error matches ErrUntrusted.
func (r *Repo) settings(ctx context.Context) (settings, error) {
	if gitProgram() == "" {
		return r.readSettings()
	}
	out, err := r.runGit(ctx, nil, nil, "config", "--null", "--list")
	if ctx.Err() != nil { // git was ended, and has refused nothing
		return nil, ctx.Err()
	}
	if errors.Is(err, ErrUntrusted) {
		return nil, err
	}
	if err != nil {
		return nil, r.untrusted(err)
	}
	return listed(string(out)), nil
}

// userSettings returns the settings outside of any repository.
func userSettings(ctx context.Context) (settings, error) {
	return (&Repo{dir: filepath.VolumeName(os.TempDir()) + string(filepath.Separator)}).settings(ctx)
}

// listed parses the output of `git config --null --list`.
func listed(out string) settings {
	all := settings{}
	for entry := range strings.SplitSeq(out, "\x00") {
		name, value, hasValue := strings.Cut(entry, "\n")
		if !hasValue {
			value = "true" // a variable without = is true
		}
		if name != "" { // the output ends with a separator
			all[name] = value
		}
	}
	return all
}

// maxIncludes is the depth to which git follows includes.
const maxIncludes = 10

// configFiles reads the files of git's configuration, with the files that they include.
type configFiles struct {
	settings settings
	lists    map[string][]string // all values of variables that may have several
	gitDir   string
	branch   string
	// urls are the URLs of the remotes. Includes may depend on them, so the first of two readings collects them.
	urls       []string
	collecting bool
}

// readSettings reads the files of git's configuration in git's order, and then its environment variables.
func (r *Repo) readSettings() (settings, error) {
	files, err := r.readConfig()
	if err != nil {
		return nil, err
	}
	return files.settings, nil
}

// readConfig is readSettings with all values of each variable.
func (r *Repo) readConfig() (*configFiles, error) {
	var urls []string
	for _, collecting := range []bool{true, false} {
		files := &configFiles{settings: settings{}, lists: map[string][]string{}, gitDir: r.gitDir, urls: urls, collecting: collecting}
		if r.git != nil {
			if name, _, err := r.head(); err == nil {
				files.branch = name.Short()
			}
		}
		if resolved, err := filepath.EvalSymlinks(r.gitDir); err == nil {
			files.gitDir = resolved
		}
		for _, path := range r.configPaths() {
			if err := files.read(path, 0); err != nil {
				return nil, fmt.Errorf("read the git configuration: %w", err)
			}
		}
		if urls = files.urls; !collecting {
			return files, files.addEnvironment()
		}
	}
	return nil, nil //nolint:nilnil // the second reading has returned
}

// configPaths returns the files of git's configuration. Later files override earlier ones.
func (r *Repo) configPaths() []string {
	var paths []string
	if off, _ := strconv.ParseBool(os.Getenv("GIT_CONFIG_NOSYSTEM")); !off {
		system := os.Getenv("GIT_CONFIG_SYSTEM")
		if system == "" {
			system = "/etc/gitconfig"
		}
		paths = append(paths, system)
	}
	if global, ok := os.LookupEnv("GIT_CONFIG_GLOBAL"); ok {
		paths = append(paths, global)
	} else {
		paths = append(paths, userConfig("config"))
		if home, err := os.UserHomeDir(); err == nil {
			paths = append(paths, filepath.Join(home, ".gitconfig"))
		}
	}
	if r.gitDir == "" {
		return paths
	}
	return append(paths, filepath.Join(r.commonDir(), "config"), filepath.Join(r.gitDir, "config.worktree"))
}

// userConfig returns the path of a file in the user's folder for git.
func userConfig(name string) string {
	base := os.Getenv("XDG_CONFIG_HOME")
	if base == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return ""
		}
		base = filepath.Join(home, ".config")
	}
	return filepath.Join(base, "git", name)
}

// commonDir returns the .git folder that all working trees of a repository share.
func (r *Repo) commonDir() string {
	content, err := within.Named(filepath.Join(r.gitDir, "commondir"), maxPointer)
	if err != nil {
		return r.gitDir
	}
	dir := strings.TrimSpace(string(content))
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(r.gitDir, dir)
	}
	return dir
}

// read reads one file and the files that it includes. A missing file is empty.
func (f *configFiles) read(path string, depth int) error {
	if path == "" || depth > maxIncludes {
		return nil
	}
	if filepath.Base(path) == "config.worktree" && !f.settings.on("extensions.worktreeconfig") {
		return nil
	}
	read := within.Named
	if strings.HasPrefix(path, "/dev/") { // /dev/null, or a pipe of the shell for <(command), which the user has named
		read = within.Given
	}
	content, err := read(path, maxConfig)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := f.readFrom(bytes.NewReader(content), path, depth); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

func (f *configFiles) readFrom(from io.Reader, path string, depth int) error {
	return gcfg.ReadWithCallback(from, func(section, sub, key, value string, blank bool) error {
		section, key = strings.ToLower(section), strings.ToLower(key)
		if key == "" {
			return nil
		}
		if blank {
			value = "true"
		}
		name := section + "." + key
		if sub != "" {
			name = section + "." + sub + "." + key
		}
		f.set(name, value)
		switch {
		case f.collecting && section == "remote" && key == "url":
			f.urls = append(f.urls, value)
		case name == "include.path", section == "includeif" && key == "path" && f.holds(sub, path):
			return f.read(expand(value, path), depth+1)
		}
		return nil
	})
}

// expand returns the path of an included file. from is the file that includes it.
func expand(path, from string) string {
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		home, err := os.UserHomeDir()
		if err != nil {
			return ""
		}
		return filepath.Join(home, rest)
	}
	if !filepath.IsAbs(path) {
		return filepath.Join(filepath.Dir(from), path)
	}
	return path
}

// holds tells whether the condition of an include in the file at path holds.
func (f *configFiles) holds(condition, path string) bool {
	kind, wanted, _ := strings.Cut(condition, ":")
	switch kind {
	case "gitdir", "gitdir/i":
		switch {
		case strings.HasPrefix(wanted, "~/"):
			wanted = filepath.ToSlash(expand(wanted, path)) + ending(wanted)
		case strings.HasPrefix(wanted, "./"):
			wanted = filepath.ToSlash(expand(wanted, path)) + ending(wanted)
		case !strings.HasPrefix(wanted, "/"):
			wanted = "**/" + wanted
		}
		return pattern.Match(whole(wanted), filepath.ToSlash(f.gitDir), kind == "gitdir/i")
	case "onbranch":
		return f.branch != "" && pattern.Match(whole(wanted), f.branch, false)
	case "hasconfig":
		variable, wanted, _ := strings.Cut(wanted, ":")
		if variable != "remote.*.url" || f.collecting {
			return false
		}
		for _, url := range f.urls {
			if pattern.Match(wanted, url, false) {
				return true
			}
		}
	}
	return false
}

// ending returns the slash at the end of a pattern, which path.Join removes.
func ending(pattern string) string {
	if strings.HasSuffix(pattern, "/") {
		return "/"
	}
	return ""
}

// whole makes a pattern that ends with a slash match everything below.
func whole(pattern string) string {
	if strings.HasSuffix(pattern, "/") {
		return pattern + "**"
	}
	return pattern
}

func (f *configFiles) set(name, value string) {
	f.settings[name] = value
	f.lists[name] = append(f.lists[name], value)
}

// addEnvironment adds the settings of GIT_CONFIG_COUNT, GIT_CONFIG_KEY_* and GIT_CONFIG_VALUE_*.
func (f *configFiles) addEnvironment() error {
	text := os.Getenv("GIT_CONFIG_COUNT")
	if text == "" {
		return nil
	}
	count, err := strconv.Atoi(text)
	if err != nil {
		return fmt.Errorf("read the git configuration: GIT_CONFIG_COUNT: %w", err)
	}
	for i := range count {
		name := os.Getenv("GIT_CONFIG_KEY_" + strconv.Itoa(i))
		first, last := strings.Index(name, "."), strings.LastIndex(name, ".")
		if first < 0 {
			return fmt.Errorf("read the git configuration: GIT_CONFIG_KEY_%d is no name of a variable", i)
		}
		name = strings.ToLower(name[:first]) + name[first:last] + strings.ToLower(name[last:])
		f.set(name, os.Getenv("GIT_CONFIG_VALUE_"+strconv.Itoa(i)))
	}
	return nil
}
