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

// What a file of a release may be at most: the components of the largest provider have some 5 MiB. Whoever released it may be a stranger,
// and it is parsed here: of 16 MiB of YAML the worst that was found takes 25 seconds and 2 GiB.
const maxRelease = 16 << 20

// releaseLimits bound what a file that has anchors, or may be nested deep, is parsed to.
var releaseLimits = yamledit.Limits{Bytes: maxRelease, Nodes: 2_000_000, Depth: 100}

// release is one version of a provider in a repository. It is read once, so that the installed objects are the same that were compared with
// fleet.lock.
type release struct {
	provider config.Provider
	manifest Manifest
	// screened says once what is wrong with it for who parses it.
	screened func() error
}

// released returns the release of p, as it is: nothing of it has been looked into.
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
	if known := s.releases[p]; known != nil { // two have asked at once, and a server may answer each otherwise
		return known, nil
	}
	s.releases[p] = r
	return r, nil
}

var errTooLarge = fmt.Errorf("a file of it is larger than %d MiB", maxRelease>>20)

// screened is released for a parser: parsing the result takes no more than its size suggests.
func (s *Source) screened(ctx context.Context, p Provider) (*release, error) {
	r, err := s.released(ctx, p)
	if err != nil {
		return nil, err
	}
	return r, r.screened()
}

// screen refuses a file that is a bomb for who parses it. Where it is no YAML at all, its reader says so.
func (m *Manifest) screen(of string) error {
	if yamledit.Tame(m.YAML) {
		return nil
	}
	_, err := yamledit.ParseWithin(m.YAML, releaseLimits)
	if yamledit.IsBeyond(err) {
		return diag.Wrap(fmt.Sprintf("read %s of %s", m.File, of), err, "it is nothing that a provider releases: look at where it comes from")
	}
	return nil
}

// variableUse matches a variable with what is done to it.
var variableUse = regexp.MustCompile(`\$\{[A-Za-z0-9_]+([^}]*)\}`)

// fill gives the components of a release with their variables filled in, or as they are if raw, and clusterctl's labels.
func (s *Source) fill(r *release, raw bool) (repository.Components, error) {
	if !raw {
		longest, grown := 0, 0
		for _, value := range s.variables {
			longest = max(longest, len(value))
		}
		for _, m := range variableUse.FindAllSubmatchIndex(r.manifest.YAML, -1) {
			const replaced = 1 // one letter of the value may become all that stands behind its name
			grown += longest * (replaced + m[3] - m[2])
		}
		if grown > 4*maxRelease {
			return nil, fmt.Errorf("it grows beyond %d MiB with its variables filled in", 4*maxRelease>>20)
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

// quotingError is one that has the whole document in its text, of which it says the beginning and the end.
type quotingError struct{ error }

// Unwrap returns the whole error.
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

// checkFiles refuses a repository in a folder that is not made of files: a pipe would never be read to its end, and a device has none. It
// looks at all versions, as clusterctl does where none is asked for.
func checkFiles(location string) error {
	at, err := url.Parse(location)
	if err != nil || at.Scheme != "file" && at.Scheme != "" {
		return nil //nolint:nilerr // clusterctl says what is wrong with it
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
			case err != nil: // clusterctl says what is wrong with it, if it needs it
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
