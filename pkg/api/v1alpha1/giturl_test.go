package v1alpha1

import (
	"strings"
	"testing"
)

func TestGitURL(t *testing.T) {
	for url, tc := range map[string]struct {
		scheme GitScheme
		want   string // the result of ParseURL; after "error: ", a part of its error
	}{
		"":                                {GitLocal, "error: no scheme"},
		"https://example.org/a/b.git":     {GitHTTPS, "https://example.org/a/b.git"},
		"https://example.org:8443/a":      {GitHTTPS, "https://example.org:8443/a"},
		"http://localhost:3000/a/b":       {GitHTTPS, "http://localhost:3000/a/b"},
		"http://127.0.0.1:3000/a/b":       {GitHTTPS, "http://127.0.0.1:3000/a/b"},
		"http://[::1]/a":                  {GitHTTPS, "http://[::1]/a"},
		"http://example.org/a":            {GitHTTPS, "error: plain http"},
		"http://127.0.0.1.evil.org/a":     {GitHTTPS, "error: plain http"},
		"http://localhost.evil.org/a":     {GitHTTPS, "error: plain http"},
		"ssh://git@example.org/a/b.git":   {GitSSH, "ssh://git@example.org/a/b.git"},
		"ssh://git@example.org:2222/a":    {GitSSH, "ssh://git@example.org:2222/a"},
		"git@example.org:a/b.git":         {GitSSH, "ssh://git@example.org/a/b.git"},
		"git@example.org:/srv/a.git":      {GitSSH, "ssh://git@example.org/srv/a.git"},
		"ssh://example.org/a":             {GitHTTPS, "error: no user"},
		"ssh://git:hunter2@example.org/a": {GitHTTPS, "error: password"},
		"https://me:hunter2@example.org":  {GitHTTPS, "error: credentials"},
		"https://hunter2@example.org/a":   {GitHTTPS, "error: credentials"},
		"https://example.org":             {GitHTTPS, "error: no path"},
		"https://example.org/":            {GitHTTPS, "error: no path"},
		"https:///a":                      {GitHTTPS, "error: no host"},
		"https://example.org/a?b=hunter2": {GitHTTPS, "error: query"},
		"https://example.org/a#b":         {GitHTTPS, "error: query"},
		"https://example.org/a b":         {GitHTTPS, "error: blank"},
		"https://x:hunter2@exa mple/%zz":  {GitHTTPS, "error: not a URL"},
		"file:///srv/fleet":               {GitHTTPS, "error: file://"},
		"git://example.org/a":             {GitHTTPS, `error: "git"`},
		"/srv/fleet":                      {GitHTTPS, "error: no scheme"},
		"../fleet":                        {GitHTTPS, "error: no scheme"},
		"example.org/a/b":                 {GitHTTPS, "error: no scheme"},
		`C:\fleet`:                        {GitHTTPS, "error: "},
		"git@example.org:":                {GitHTTPS, "error: "},
		`git@example.org:\fleet`:          {GitHTTPS, "error: "},
		"git@example.org:2222/a":          {GitSSH, "ssh://git@example.org/2222/a"},
		"git@example.org:2222:a":          {GitHTTPS, "error: begins with a number and a colon"},
		"git@example\f:a":                 {GitHTTPS, "error: no host"},
		"ssh://git@example.org:0/a":       {GitHTTPS, "error: bad port"},
		"https://example.org:65536/a":     {GitHTTPS, "error: bad port"},
	} {
		t.Run(url, func(t *testing.T) {
			git := Git{URL: url}
			if got := git.Scheme(); got != tc.scheme {
				t.Errorf("Scheme() = %s, want %s", got, tc.scheme)
			}
			got, err := git.ParseURL()
			if want, isError := strings.CutPrefix(tc.want, "error: "); isError {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("ParseURL() = %v, %v; want error %q", got, err, want)
				} else if strings.Contains(err.Error(), "hunter2") {
					t.Errorf("a secret is in the error: %v", err)
				}
				return
			}
			if err != nil || got.String() != tc.want {
				t.Errorf("ParseURL() = %v, %v; want %s", got, err, tc.want)
			}
		})
	}
}

func TestIsBranch(t *testing.T) {
	for _, good := range []string{"main", "release/1.0", "feature-x", "a@b", "ünï"} {
		if !IsBranch(good) {
			t.Errorf("%q was refused", good)
		}
	}
	for _, bad := range []string{
		"", "@", "HEAD", "-x", "a..b", "a b", "a~1", "a^", "a:b", "a?", "a*", "a[", `a\b`, "a/", "/a", "a//b", ".a",
		"a/.b", "a.lock", "a.", "a@{1}", "a\x01",
	} {
		if IsBranch(bad) {
			t.Errorf("%q was accepted", bad)
		}
	}
}
