package status

import (
	"fmt"
	"io"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/plain"
)

// All is one look at every management cluster of a fleet.
type All struct {
	FormatVersion string `json:"formatVersion"`
	// Ready: every management cluster answers and is Ready, or has ended, and no workload cluster has two owners.
	Ready              bool      `json:"ready"`
	ManagementClusters []*Report `json:"managementClusters"`
	// TwoOwners are workload clusters that several management clusters act on.
	TwoOwners []TwoOwners `json:"twoOwners"`
}

// TwoOwners is a workload cluster that several management clusters act on.
type TwoOwners struct {
	Cluster            string   `json:"cluster"`
	ManagementClusters []string `json:"managementClusters"`
	Endpoint           string   `json:"endpoint,omitempty"`
}

// Join joins the reports of a fleet's management clusters, in their order.
func Join(reports []*Report) *All {
	all := &All{FormatVersion: "1", Ready: true, ManagementClusters: reports, TwoOwners: twoOwners(reports)}
	for _, r := range reports {
		all.Ready = all.Ready && r.Ready
	}
	all.Ready = all.Ready && len(all.TwoOwners) == 0
	return all
}

// stateEnded is the state of a management cluster that was torn down after it had handed over what it had.
const stateEnded = "ended"

// Ended is the report of a management cluster that has ended: nothing is wrong with it, and nobody has to ask it.
func Ended(name string) *Report {
	return newReport(Cluster{Name: name, State: stateEnded})
}

// twoOwners finds workload clusters that several management clusters act on. Two clusters are the same one if they have the same name,
// the same API server, and at least one machine of the same name. If a cloud runs the control plane, neither side may have a machine: then
// the API server has to have an address that no other one has.
func twoOwners(reports []*Report) []TwoOwners {
	type identity struct{ name, endpoint string }
	owners, machines := map[identity][]string{}, map[identity]map[string]int{}
	for _, r := range reports {
		for _, w := range r.Clusters {
			if w.Endpoint == "" || w.Paused || w.CopyOf != "" {
				continue
			}
			id := identity{w.Namespace + "/" + w.Name, w.Endpoint}
			owners[id] = append(owners[id], r.Cluster.Name)
			if machines[id] == nil {
				machines[id] = map[string]int{}
			}
			for _, m := range w.Machines {
				machines[id][m.Name]++
			}
		}
	}
	// The API server's address alone proves nothing, because private networks reuse addresses. Names of machines are random.
	for id, named := range machines {
		shared := slices.ContainsFunc(slices.Collect(maps.Values(named)), func(n int) bool { return n > 1 })
		if !shared && (len(named) > 0 || !unique(id.endpoint)) {
			delete(owners, id)
		}
	}
	found := []TwoOwners{}
	for id, names := range owners {
		if len(names) > 1 {
			found = append(found, TwoOwners{Cluster: id.name, ManagementClusters: names, Endpoint: id.endpoint})
		}
	}
	slices.SortFunc(found, func(a, b TwoOwners) int { return strings.Compare(a.Cluster, b.Cluster) })
	return found
}

// unique tells whether no other API server has this address, HOST:PORT. The host is a public IP address or a name of the Internet then.
func unique(endpoint string) bool {
	host, _, err := net.SplitHostPort(endpoint)
	if err != nil {
		return false
	}
	if ip, err := netip.ParseAddr(host); err == nil {
		shared := netip.MustParsePrefix("100.64.0.0/10") // between a provider and its customers
		return ip.IsGlobalUnicast() && !ip.IsPrivate() && !shared.Contains(ip)
	}
	dot := strings.LastIndex(host, ".")
	return dot > 0 && !slices.Contains([]string{"local", "internal", "lan", "test", "svc", "localhost"}, host[dot+1:])
}

// hint has the command that takes the cluster from each of its owners. Which owner is the wrong one, only people know.
func (t TwoOwners) hint() string {
	commands := make([]string, 0, len(t.ManagementClusters))
	for _, name := range t.ManagementClusters {
		commands = append(commands, "`"+diag.ShellCommand("fleetctl", "cluster", "detach", t.Cluster, "--management", name)+"`")
	}
	return "take it from the wrong owner, which deletes nothing: " + strings.Join(commands, " or ")
}

// facts tells in a few words what a management cluster does. Copies that a hand-over makes or removes are no clusters of it.
func (r *Report) facts() string {
	switch {
	case r.Standby != nil:
		return r.Cluster.State + ", " + r.Standby.line(r.Time)
	case r.Cluster.State != stateRunning:
		return r.Cluster.State
	case !r.knows(partClusters):
		return r.Cluster.State + ", its workload clusters are not known"
	}
	available, copies := 0, 0
	for _, c := range r.Clusters {
		switch {
		case c.CopyOf != "":
			copies++
		case c.Ready:
			available++
		}
	}
	text := fmt.Sprintf("%s, %d of %s ready", r.Cluster.State, available, plain.Count(len(r.Clusters)-copies, "workload cluster"))
	if copies > 0 {
		text += ", " + plain.Count(copies, "copy") + " of a hand-over under way"
	}
	if unknown := r.OwnRecords.Silent + r.OwnRecords.NotAsked; unknown > 0 && r.changedHands() {
		text += fmt.Sprintf(", own record of the owner not known of %d", unknown)
	}
	return text
}

// AllView writes a line for each management cluster, then what is wrong with any of them.
func AllView(w io.Writer, all *All, style Style) error {
	var b strings.Builder
	var wrong []Problem
	for _, t := range all.TwoOwners {
		wrong = append(wrong, Problem{
			Object: "Cluster " + t.Cluster, Reason: "TWO OWNERS: " + strings.Join(t.ManagementClusters, " and ") + " act on it (" + t.Endpoint + ")",
			Hint: t.hint(),
		})
	}
	for _, r := range all.ManagementClusters {
		facts := join([]string{r.facts(), style.wide("host", r.Cluster.Host), style.wide("Kubernetes", r.Cluster.Kubernetes)})
		b.WriteString(line(r.Ready, plain.Unbroken(r.Cluster.Name), plain.Unbroken(facts), "", style) + "\n")
		for _, p := range r.Problems {
			p.Object = r.Cluster.Name + ": " + p.Object
			wrong = append(wrong, p)
		}
	}
	problems(&b, wrong, style)
	_, err := io.WriteString(w, b.String())
	return err
}
