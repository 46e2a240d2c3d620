// Package version tells which fleetctl this is and which libraries it embeds.
package version

import (
	"runtime"
	"runtime/debug"
	"strings"
)

// Set by the release build through -ldflags; else taken from the build information that Go embeds.
var (
	version = ""
	commit  = ""
	date    = ""
)

// Info is what `fleetctl version` prints.
type Info struct {
	FormatVersion string            `json:"formatVersion"`
	Version       string            `json:"version"`
	Commit        string            `json:"commit,omitempty"`
	Date          string            `json:"date,omitempty"`
	Go            string            `json:"go"`
	Platform      string            `json:"platform"`
	Libraries     map[string]string `json:"libraries"`
}

// libraries whose version decides what fleetctl installs or how it talks; the key is the name that users know.
var libraries = map[string]string{
	"cluster-api":        "sigs.k8s.io/cluster-api",
	"kind":               "sigs.k8s.io/kind",
	"flux2":              "github.com/fluxcd/flux2/v2",
	"go-git":             "github.com/go-git/go-git/v5",
	"client-go":          "k8s.io/client-go",
	"controller-runtime": "sigs.k8s.io/controller-runtime",
}

// Released is the version that somebody else can install: this one, if it is a release, else "latest".
func Released() string {
	v := Get().Version
	if !strings.HasPrefix(v, "v") || strings.ContainsAny(v, "-+( ") {
		return "latest"
	}
	return v
}

// Get reads the build's own information.
func Get() Info {
	info := Info{
		FormatVersion: "1", Version: version, Commit: commit, Date: date,
		Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH, Libraries: map[string]string{},
	}
	build, ok := debug.ReadBuildInfo()
	if !ok {
		return info
	}
	if info.Version == "" {
		info.Version = build.Main.Version
	}
	for _, s := range build.Settings {
		switch {
		case s.Key == "vcs.revision" && info.Commit == "":
			info.Commit = s.Value
		case s.Key == "vcs.time" && info.Date == "":
			info.Date = s.Value
		}
	}
	byPath := map[string]string{}
	for _, m := range build.Deps {
		byPath[m.Path] = m.Version
	}
	for name, path := range libraries {
		if v := byPath[path]; v != "" {
			info.Libraries[name] = v
		}
	}
	return info
}

// Library returns the embedded version of one of the libraries that Info lists ("flux2" → "v2.9.5"), or "".
func Library(name string) string { return Get().Libraries[name] }
