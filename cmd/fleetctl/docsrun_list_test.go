package main

import "strings"

// Why a line of the documentation is not run by TestDocsRun.
const (
	needsCluster = "it makes, asks, changes or removes a management cluster"
	needsNetwork = "it fetches, or is given what was fetched"
	needsRemote  = "it is about a remote or a forge, and this fleet has neither"
	needsProgram = "it runs a program that not every machine has"
	isThere      = "the test has done it"
	needsMachine = "what it finds is the machine's: its ports, its disk, its container engine"
)

// docsNotRun tells which lines TestDocsRun does not run, and why. A line that begins with the words of line, or has it where that is a
// flag, is meant, on the page that is named or on all. Whatever does not fit any of these is run.
var docsNotRun = []struct {
	page string
	line string
	why  string
}{
	{"docs/tasks/init.md", "fleetctl init --scaffold", isThere},
	{"", "fleetctl init", needsCluster},
	{"docs/tasks/charts.md", "fleetctl chart add openstack", needsNetwork},
	{"docs/tasks/charts.md", "fleetctl cluster add shop --flavour openstack", needsNetwork},
	{"docs/tasks/notifications.md", "fleetctl notification add commits", needsRemote},
	{"docs/tasks/orphans.md", "fleetctl cluster remove shop --push", needsRemote},
	{"docs/tasks/teardown.md", "fleetctl management add undo", needsRemote},
	{"", "fleetctl bootstrap", needsCluster},
	{"", "fleetctl teardown", needsCluster},
	{"", "fleetctl status", needsCluster},
	{"", "fleetctl why", needsCluster},
	{"", "fleetctl kubeconfig", needsCluster},
	{"", "fleetctl cluster kubeconfig", needsCluster},
	{"", "fleetctl cluster detach", needsCluster},
	{"", "fleetctl cluster drain", needsCluster},
	{"", "fleetctl pivot", needsCluster},
	{"", "fleetctl backup", needsCluster},
	{"", "fleetctl drill", needsCluster},
	{"", "fleetctl standby activate", needsCluster},
	{"", "fleetctl standby refresh", needsCluster},
	{"", "fleetctl standby add", needsRemote},
	{"", "fleetctl cluster transfer", needsCluster},
	{"", "fleetctl restore", needsCluster},
	{"", "fleetctl connect", needsCluster},
	{"", "fleetctl credentials", needsCluster},
	{"", "fleetctl orphans", needsCluster},
	{"", "fleetctl upgrade apply", needsCluster},
	{"", "fleetctl upgrade plan --context", needsCluster},
	{"", "fleetctl host logs", needsCluster},
	{"", "fleetctl host stop", needsCluster},
	{"", "fleetctl host start", needsCluster},
	{"", "fleetctl host delete", needsCluster},
	{"", "fleetctl host issuer", needsCluster},
	{"", "fleetctl promote", needsCluster},
	{"docs/tasks/pause.md", "fleetctl channel pause release", needsCluster},
	{"docs/tasks/pause.md", "fleetctl channel resume release", needsCluster},
	{"", "kubectl", needsCluster},
	{"", "--wait", needsCluster},
	{"", "--now", needsCluster},

	{"", "fleetctl bundle", needsNetwork},
	{"", "fleetctl lock", needsNetwork},
	{"", "fleetctl upgrade plan", needsNetwork},

	{"", "fleetctl ci add --pr", needsRemote},
	{"", "git switch renovate/…", needsRemote},
	{"docs/tasks/renovate.md", "RENOVATE_TOKEN=…", needsRemote},
	{"docs/tasks/transfer-a-cluster.md", "git pull", needsRemote},
	{"docs/tasks/pull-requests.md", "export FLEETCTL_GIT_TOKEN=…", needsRemote},
	{"docs/tasks/pull-requests.md", "--pr", needsRemote},
	{"docs/tasks/management-clusters.md", "fleetctl management add eu --parent root", needsRemote},
	{"docs/tasks/init.md", "export", needsRemote},
	{"docs/tasks/bootstrap.md", "export", needsRemote},
	{"docs/tasks/image-automation.md", "git log", needsRemote},

	{"", "fleetctl doctor", needsMachine},
	{"", "helm", needsProgram},
	{"docs/tasks/aws.md", "clusterawsadm", needsProgram},
	{"docs/tasks/azure.md", "az", needsProgram},
	{"docs/tasks/google-cloud.md", "gcloud", needsProgram},
	{"docs/tasks/google-cloud.md", "fleetctl secret encrypt", needsProgram}, // gcloud makes the key
	{"docs/tasks/openstack.md", "openstack", needsProgram},
	{"docs/tasks/openstack.md", "curl", needsNetwork},
	{"docs/tasks/secrets.md", "age-keygen", needsProgram},
	{"docs/tasks/velero.md", "velero", needsProgram},
	{"README.md", "go install", needsNetwork},
	{"README.md", "make", needsProgram},
	{"docs/tasks/adopt.md", "fleetctl adopt --context", needsCluster},

	{"", "mkdir fleet && cd fleet", isThere},
	{"docs/tutorial.md", "fleetctl cluster add demo", isThere},
	{"README.md", "fleetctl cluster add demo", isThere},
}

// notRun is the place in docsNotRun of the first entry that a line of a page fits, or -1.
func notRun(page, line string) int {
	for i, entry := range docsNotRun {
		if entry.page != "" && entry.page != page {
			continue
		}
		words := line + " "
		if strings.HasPrefix(words, entry.line+" ") || strings.HasPrefix(entry.line, "--") && strings.Contains(words, " "+entry.line+" ") {
			return i
		}
	}
	return -1
}
