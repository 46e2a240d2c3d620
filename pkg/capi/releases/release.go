package releases

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"unicode/utf8"

	"sigs.k8s.io/cluster-api/cmd/clusterctl/client/config"
	"sigs.k8s.io/cluster-api/cmd/clusterctl/client/repository"

	"github.com/fleetctl/fleetctl/pkg/api/yamledit"
	"github.com/fleetctl/fleetctl/pkg/diag"
)

// maxRelease is the maximum size of a file of a release, in bytes. The components of the largest provider have some 5 MiB. The file may
// come from a stranger and is parsed here: the worst known YAML of 16 MiB takes 25 seconds and 2 GiB.
const maxRelease = 16 << 20

// releaseLimits bound a parsed file with anchors or with deep nesting.
var releaseLimits = yamledit.Limits{Bytes: maxRelease, Nodes: 2_000_000, Depth: 100}

// release is one version of a provider in a repository. It is read only once, so that the installed objects are the ones that were compared
// with fleet.lock.
type release struct {
	provider config.Provider
	manifest Manifest
	// screened checks once whether the manifest is safe to parse.
	screened func() error
}

// released returns the release of p without parsing it.
func (s *Source) released(ctx context.Context, p Provider) (*release, error) {
	s.mu.Lock()
	known := s.releases[p]
	s.mu.Unlock()
	if known != nil {
		return known, nil
	}
	client, err := s.Repository(ctx, p)
	if err != nil {
		return nil, err
	}
	p.Version = cmp.Or(p.Version, client.DefaultVersion())
	content, err := client.Components().Raw(ctx, repository.ComponentsOptions{Version: p.Version})
	if err == nil && len(content) > maxRelease {
		err = errTooLarge
	}
	if err != nil {
		return nil, diag.Wrap("read the components of "+p.String(), err, "")
	}
	r := &release{
		provider: config.NewProvider(client.Name(), client.URL(), client.Type()),
		manifest: Manifest{Version: p.Version, File: path.Base(client.URL()), YAML: content},
	}
	r.screened = sync.OnceValue(func() error { return r.manifest.screen(p.String()) })
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.releases[p]; known != nil { // two goroutines have read it, and a server may give each another answer
		return known, nil
	}
	s.releases[p] = r
	return r, nil
}

var errTooLarge = fmt.Errorf("a file of the release is larger than %d MiB", maxRelease>>20)

// screened returns the release of p after a check that parsing it takes no more memory than its size suggests.
func (s *Source) screened(ctx context.Context, p Provider) (*release, error) {
	r, err := s.released(ctx, p)
	if err != nil {
		return nil, err
	}
	return r, r.screened()
}

// screen refuses a file that would take too much memory to parse. It accepts invalid YAML, because the parser reports that.
func (m *Manifest) screen(of string) error {
	if yamledit.Tame(m.YAML) {
		return nil
	}
	_, err := yamledit.ParseWithin(m.YAML, releaseLimits)
	if yamledit.IsBeyond(err) {
		return diag.Wrap(fmt.Sprintf("read %s of %s", m.File, of), err, "no provider releases such a file: check its source")
	}
	return nil
}

// variableUse matches the use of a variable, with its operator.
var variableUse = regexp.MustCompile(`\$\{[A-Za-z0-9_]+([^}]*)\}`)

// fill returns the components of a release with clusterctl's labels. If raw is false, it also fills in the variables.
func (s *Source) fill(r *release, raw bool) (repository.Components, error) {
	if !raw {
		longest, grown := 0, 0
		for _, value := range s.variables {
			longest = max(longest, len(value))
		}
		for _, m := range variableUse.FindAllSubmatchIndex(r.manifest.YAML, -1) {
			const replaced = 1 // the text after the variable's name may replace each letter of the value
			grown += longest * (replaced + m[3] - m[2])
		}
		if grown > 4*maxRelease {
			return nil, fmt.Errorf("the components grow beyond %d MiB with their variables filled in", 4*maxRelease>>20)
		}
	}
	if !raw {
		if err := s.checkFilled(r); err != nil {
			return nil, err
		}
	}
	components, err := repository.NewComponents(repository.ComponentsInput{
		Provider: r.provider, ConfigClient: s.config, Processor: newProcessor(), RawYaml: r.manifest.YAML,
		Options: repository.ComponentsOptions{Version: r.manifest.Version, SkipTemplateProcess: raw},
	})
	if err != nil {
		return nil, &quotingError{s.Hiding(err)}
	}
	return components, nil
}

// quotingError is an error that quotes a whole document. It shows only the beginning and the end.
type quotingError struct{ error }

// Unwrap returns the unshortened error.
func (e *quotingError) Unwrap() error { return e.error }

// Error leaves out the middle of a long text.
func (e *quotingError) Error() string {
	const kept = 200
	text := e.error.Error()
	if len(text) <= 3*kept {
		return text
	}
	first, last := kept, len(text)-kept
	for !utf8.RuneStart(text[first]) {
		first--
	}
	for !utf8.RuneStart(text[last]) {
		last++
	}
	return text[:first] + " […] " + text[last:]
}

// checkFiles refuses a repository in a folder with other files than regular ones: reading a pipe or a device may never end. It checks all
// versions, because clusterctl reads all if no version is given.
func checkFiles(location string) error {
	at, err := url.Parse(location)
	if err != nil || at.Scheme != "file" && at.Scheme != "" {
		return nil //nolint:nilerr // clusterctl reports this error
	}
	file := filepath.FromSlash(at.Path)
	for _, name := range []string{filepath.Base(file), "metadata.yaml"} {
		found, err := filepath.Glob(filepath.Join(globbed(filepath.Dir(filepath.Dir(file))), "*", globbed(name)))
		if err != nil {
			return err
		}
		for _, each := range found {
			info, err := os.Stat(each)
			switch {
			case err != nil: // clusterctl reports this error if it needs the file
			case !info.Mode().IsRegular() && !info.IsDir():
				return fmt.Errorf("%s is no regular file", each)
			case info.Size() > maxRelease:
				return fmt.Errorf("%s: %w", each, errTooLarge)
			}
		}
	}
	return nil
}

// globbed escapes the characters that filepath.Glob would interpret.
func globbed(name string) string {
	return strings.NewReplacer(`*`, `[*]`, `?`, `[?]`, `[`, `[[]`).Replace(name)
}
