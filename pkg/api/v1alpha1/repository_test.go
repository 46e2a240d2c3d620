package v1alpha1

import (
	"strings"
	"testing"
)

// A separate repository has a remote other than this fleet's, takes environments of this fleet, and belongs to a management cluster with a
// parent.
func TestRepositoryOfItsOwn(t *testing.T) {
	const head = `apiVersion: fleetctl.dev/v1alpha1
kind: Fleet
metadata: {name: masters}
spec:
  git: {url: "https://git.example.com/platform/fleet.git"}
  environments: [{name: prod}]
  managementClusters:
  - {name: root, cloud: root, providers: [{name: docker}]}
  - name: eu
    cloud: eu
    providers: [{name: docker}]
`
	for name, tc := range map[string]struct{ lines, at, want string }{
		"as it is meant": {"    parent: root\n    repository: {fleet: acme-eu, git: {url: 'https://git.example.com/eu.git'}, environments: " +
			"[prod]}\n", "", ""},
		"nobody makes it": {
			"    repository: {git: {url: 'https://git.example.com/eu.git'}}\n",
			"spec.managementClusters[1].repository", "another one makes",
		},
		"no remote": {
			"    parent: root\n    repository: {git: {branch: main}}\n",
			"spec.managementClusters[1].repository.git.url", "required field",
		},
		"the fleet's own": {
			"    parent: root\n    repository: {git: {url: 'https://git.example.com/platform/fleet'}}\n",
			"spec.managementClusters[1].repository.git.url", "repository of this fleet",
		},
		"no address": {
			"    parent: root\n    repository: {git: {url: 'nonsense'}}\n",
			"spec.managementClusters[1].repository.git.url", "no scheme",
		},
		"a bad branch": {
			"    parent: root\n    repository: {git: {url: 'https://git.example.com/eu.git', branch: '..'}}\n",
			"spec.managementClusters[1].repository.git.branch", "name of a branch",
		},
		"a bad name": {
			"    parent: root\n    repository: {fleet: 'A b', git: {url: 'https://git.example.com/eu.git'}}\n",
			"spec.managementClusters[1].repository.fleet", "DNS label",
		},
		"unknown environment": {
			"    parent: root\n    repository: {git: {url: 'https://git.example.com/eu.git'}, environments: [test]}\n",
			"spec.managementClusters[1].repository.environments[0]", "no environment",
		},
		"environment repeated": {
			"    parent: root\n    repository: {git: {url: 'https://git.example.com/eu.git'}, environments: [prod, prod]}\n",
			"spec.managementClusters[1].repository.environments[1]", "prod",
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Decode("fleet.yaml", []byte(head+tc.lines)) // it validates, too
			if tc.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tc.at) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%v, want %q at %s", err, tc.want, tc.at)
			}
		})
	}
}
