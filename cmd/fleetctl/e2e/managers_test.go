//go:build e2e && providers

package e2e

import (
	"encoding/hex"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetctl/fleetctl/pkg/kube"
)

// takes prints what each manager took of time until it was Available, and what it has resident now; and the control plane, with how
// many CRDs it carries. What listens on more than loopback has to be what docs/embedded.md admits.
func takes(t *testing.T, f *fleet, c *kube.Client, made result) {
	t.Helper()
	var deployments appsv1.DeploymentList
	if err := c.List(t.Context(), &deployments); err != nil {
		t.Fatal(err)
	}
	table := processTable(t)
	managers := managersOf(f, table)
	for i := range deployments.Items {
		d := &deployments.Items[i]
		pid, ok := managers[client.ObjectKeyFromObject(d)]
		if !ok {
			t.Errorf("Deployment %s/%s has no process", d.Namespace, d.Name)
			continue
		}
		figure(d.Namespace+"/"+d.Name, availableAfter(d), table[pid].rss)
		for _, address := range exposed(t, pid) {
			if !admitted(table[pid].command, address.Port()) {
				t.Errorf("%s/%s listens on %s: %s", d.Namespace, d.Name, address, table[pid].command)
			}
		}
	}
	for _, p := range table {
		if strings.HasPrefix(p.program, cache) && (p.name == "etcd" || p.name == "kube-apiserver") {
			figure(p.name, 0, p.rss)
		}
	}
	crds := &metav1.PartialObjectMetadataList{}
	crds.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinitionList"})
	if err := c.List(t.Context(), crds); err != nil {
		t.Fatal(err)
	}
	all := f.on.processes(f)
	own := map[int]proc{}
	for pid := range all {
		own[pid] = table[pid]
	}
	fmt.Fprintf(os.Stderr, "    init took %.0f s; %d CRDs; %d processes take %d MiB together\n",
		made.took.Seconds(), len(crds.Items), len(own), proportionalMemory(t, own)>>20)
}

func figure(name string, after time.Duration, rss int64) {
	took := ""
	if after > 0 {
		took = fmt.Sprintf("Available after %3.0f s", after.Seconds())
	}
	fmt.Fprintf(os.Stderr, "    %-82s %-24s %5d MiB\n", name, took, rss>>20)
}

// availableAfter is counted from when the Deployment was made, in whole seconds: the API has no more.
func availableAfter(d *appsv1.Deployment) time.Duration {
	for _, condition := range d.Status.Conditions {
		if condition.Type == appsv1.DeploymentAvailable {
			return condition.LastTransitionTime.Sub(d.CreationTimestamp.Time)
		}
	}
	return 0
}

// managersOf are the processes of the fleet's Deployments: each works in the folder that stands for its container's root.
func managersOf(f *fleet, table map[int]proc) map[kube.Key]int {
	run := filepath.Join(f.state, "clusters", f.name, "embedded", "runner", "run")
	out := map[kube.Key]int{}
	for pid, p := range table {
		within, err := filepath.Rel(run, p.dir)
		parts := strings.Split(within, string(filepath.Separator))
		if err == nil && parts[0] != ".." && len(parts) >= 2 {
			out[kube.Key{Namespace: parts[0], Name: parts[1]}] = pid
		}
	}
	return out
}

// admitted tells whether a flag that takes a port and no address has put the program there.
func admitted(command string, port uint16) bool {
	return slices.ContainsFunc([]string{"webhook-port", "secure-port", "healthz-port"}, func(flag string) bool {
		return slices.Contains(strings.Fields(command), "--"+flag+"="+strconv.Itoa(int(port))) ||
			slices.Contains(strings.Fields(command), "-"+flag+"="+strconv.Itoa(int(port)))
	})
}

// exposed is where a process listens for others than this machine.
func exposed(t *testing.T, pid int) []netip.AddrPort {
	t.Helper()
	dir := filepath.Join("/proc", strconv.Itoa(pid))
	own := map[string]bool{}
	descriptors, err := os.ReadDir(filepath.Join(dir, "fd"))
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range descriptors {
		target, _ := os.Readlink(filepath.Join(dir, "fd", d.Name())) // closed meanwhile
		if inode, ok := strings.CutPrefix(target, "socket:["); ok {
			own[strings.TrimSuffix(inode, "]")] = true
		}
	}
	var out []netip.AddrPort
	for _, table := range []string{"tcp", "tcp6"} {
		raw, err := os.ReadFile(filepath.Join(dir, "net", table))
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range lines(string(raw))[1:] {
			const address, state, inode, listens = 1, 3, 9, "0A"
			fields := strings.Fields(line)
			if fields[state] != listens || !own[fields[inode]] {
				continue
			}
			if at := socketAddress(t, fields[address]); !at.Addr().Unmap().IsLoopback() {
				out = append(out, at)
			}
		}
	}
	return out
}

// socketAddress reads an address as /proc/net has it: words of four bytes, each in the machine's order, which is little endian wherever
// this runs, and a port.
func socketAddress(t *testing.T, text string) netip.AddrPort {
	t.Helper()
	host, port, _ := strings.Cut(text, ":")
	raw, err := hex.DecodeString(host)
	if err != nil {
		t.Fatal(err)
	}
	for word := range slices.Chunk(raw, 4) {
		slices.Reverse(word)
	}
	addr, ok := netip.AddrFromSlice(raw)
	number, err := strconv.ParseUint(port, 16, 16)
	if err != nil || !ok {
		t.Fatalf("%s is not an address: %v", text, err)
	}
	return netip.AddrPortFrom(addr, uint16(number))
}
