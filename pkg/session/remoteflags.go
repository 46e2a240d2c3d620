package session

import (
	"slices"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/diag"
)

// remoteFlags are the flags about the remote of the fleet repo, and the kind of remote that each is for; "" stands for each kind. The token
// is for ssh remotes too, because a command that opens a pull request gives it to the forge.
var remoteFlags = map[string]v1alpha1.GitScheme{
	"git-ca-file":     v1alpha1.GitHTTPS,
	"git-token-file":  "",
	"git-username":    v1alpha1.GitHTTPS,
	"flux-token-file": v1alpha1.GitHTTPS,
	"flux-username":   v1alpha1.GitHTTPS,
	"ssh-key-file":    v1alpha1.GitSSH,
	"ssh-known-hosts": v1alpha1.GitSSH,
}

// RemoteFlags are the names of the flags about the remote of the fleet repo, for Options.RemoteFlags.
func RemoteFlags() []string {
	var names []string
	for name := range remoteFlags {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// refuseIdle returns a usage error for flags that have no effect on the remote that the fleet repo has. Whoever typed such a flag expects
// that fleetctl and Flux use the remote.
func (s *Session) refuseIdle() error {
	scheme := s.Fleet.Spec.Git.Scheme()
	var idle []string
	for _, flag := range s.Opts.RemoteFlags {
		if of := remoteFlags[flag]; scheme == v1alpha1.GitLocal || of != "" && of != scheme {
			idle = append(idle, "--"+flag)
		}
	}
	if len(idle) == 0 {
		return nil
	}
	flags, have := strings.Join(idle, ", "), "has"
	if len(idle) > 1 {
		have = "have"
	}
	const leave = ", or leave the flag out"
	switch {
	case scheme != v1alpha1.GitLocal:
		return diag.Usage("give the flags of a remote over "+string(scheme)+leave,
			"%s %s no effect: the remote of the fleet repo, %s, is reached over %s", flags, have, s.Fleet.Spec.Git.URL, scheme)
	case s.NewFleet:
		return diag.Usage("give the remote with --git-url"+leave,
			"%s %s no effect: the fleet repo has no remote, and fleetctl serves its folder to Flux", flags, have)
	}
	return diag.Usage("declare the remote in fleet.yaml as spec.git.url"+leave,
		"%s %s no effect: fleet.yaml declares no remote, and fleetctl serves the folder to Flux", flags, have)
}
