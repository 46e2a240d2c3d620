package status

import (
	"strings"
	"testing"
	"time"
)

// Credentials that expire soon are a warning, and expired credentials are a problem.
func TestCredentialsThatEnd(t *testing.T) {
	now := time.Date(2026, 11, 23, 5, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		until *time.Time
		text  string
		ready bool
	}{
		"no end": {nil, "", true},
		"late":   {new(now.Add(25 * time.Hour)), "", true},
		"soon":   {new(now.Add(time.Hour)), "credentials end at 2026-11-23T06:00:00Z: `fleetctl credentials` lists them", true},
		"ended":  {new(now.Add(-time.Hour)), "credentials ended at 2026-11-23T04:00:00Z", false},
	} {
		r := &Report{
			Time: now, Ready: true, Cluster: Cluster{Name: "mgmt", State: stateRunning}, Flux: Flux{Installed: true},
			Providers: []Item{{Name: "aws", Type: "infrastructure", Version: "v2.13.0", Ready: true, CredentialsUntil: c.until}},
		}
		(&collector{report: r}).judgeInstalled()
		var out strings.Builder
		plain := func(text string) string { return text }
		if err := Tree(&out, r, Style{Good: plain, Bad: plain, Dim: plain}); err != nil {
			t.Fatal(err)
		}
		if r.Ready != c.ready || !strings.Contains(out.String(), c.text) || c.text == "" && strings.Contains(out.String(), "credentials") {
			t.Errorf("%s: ready %v\n%s", name, r.Ready, &out)
		}
	}
}
