package pivot

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fleetctl/fleetctl/pkg/capi"
	"github.com/fleetctl/fleetctl/pkg/flux"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/plain"
	"github.com/fleetctl/fleetctl/pkg/steps"
)

// The API groups of objects that may name the API of a cloud: clusters of infrastructure providers, and control planes.
const (
	infrastructure = "infrastructure.cluster.x-k8s.io"
	controlPlanes  = "controlplane.cluster.x-k8s.io"
)

// mostEndpoints bounds the number of endpoints that tryClouds tries.
const mostEndpoints = 20

// azureAPIs are the hosts of Azure's API, by the environment that a cluster names.
var azureAPIs = map[string]string{
	"": "management.azure.com", "AzurePublicCloud": "management.azure.com",
	"AzureUSGovernmentCloud": "management.usgovcloudapi.net", "AzureChinaCloud": "management.chinacloudapi.cn",
}

// apiHost returns the host of the cloud's API that the controllers of a provider use for an object. known is false if fleetctl does not
// know the host. A provider without a cloud has no host.
func apiHost(obj *unstructured.Unstructured) (host string, known bool) {
	of := func(field string) string {
		value, _, _ := unstructured.NestedString(obj.Object, "spec", field)
		return value
	}
	switch kind := obj.GetKind(); kind {
	case "AWSCluster", "AWSManagedControlPlane":
		if region := of("region"); strings.HasPrefix(region, "cn-") {
			return "ec2." + region + ".amazonaws.com.cn", true
		} else if region != "" {
			return "ec2." + region + ".amazonaws.com", true
		}
		return "", false
	case "VSphereCluster":
		host = strings.TrimPrefix(of("server"), "https://")
		return host, host != ""
	case "AzureCluster", "AzureManagedControlPlane":
		host = azureAPIs[of("azureEnvironment")]
		return host, host != ""
	case "GCPCluster", "GCPManagedCluster":
		return "compute.googleapis.com", true
	default: // such as OpenStackCluster; the control plane of an AWSManagedCluster names the same host
		return "", !strings.HasSuffix(kind, "Cluster") || slices.Contains([]string{"DockerCluster", "DevCluster", "AWSManagedCluster"}, kind)
	}
}

// endpoints returns the URLs of the clouds' APIs that objects name, and the objects whose API fleetctl does not know.
func endpoints(objects []*unstructured.Unstructured) (urls, unknown []string) {
	all := map[string]bool{}
	for _, obj := range objects {
		if obj.GroupVersionKind().Group != infrastructure && !strings.HasSuffix(obj.GetKind(), "ManagedControlPlane") {
			continue
		}
		host, known := apiHost(obj)
		at := url.URL{Scheme: "https", Host: host}
		if parsed, err := url.Parse(at.String()); err != nil || parsed.Host != host || parsed.User != nil {
			known = false
		}
		switch {
		case !known:
			unknown = append(unknown, kube.RefOf(obj).String())
		case host != "":
			all[at.String()] = true
		}
	}
	slices.Sort(unknown)
	return slices.Sorted(maps.Keys(all)), unknown
}

// tryClouds finds out from inside the target which APIs of clouds it reaches, of those that the source's objects name. An API that does not
// answer is only a warning, because Flux asks it, and a provider may use a proxy that Flux does not use.
func (p *Move) tryClouds(ctx context.Context, source *kube.Client, target *Target, _ func(string)) error {
	if p.Under != nil {
		return steps.NothingToDo("the hand-over is under way")
	}
	from, err := capi.New(source)
	if err != nil {
		return err
	}
	objects, err := from.InGroups(ctx, infrastructure, controlPlanes) // fewer requests than for all groups
	if err != nil {
		return err
	}
	urls, unknown := endpoints(objects)
	report := p.session.Deps.Report
	if len(urls) > mostEndpoints {
		unknown, urls = append(unknown, urls[mostEndpoints:]...), urls[:mostEndpoints]
	}
	if len(unknown) > 0 {
		report.Warn(fmt.Sprintf("cannot find out whether %s reaches the clouds of these objects: %s", target.Name, plain.Names(unknown,
			mostNamed)))
	}
	if len(urls) == 0 {
		return steps.NothingToDo("no object names a cloud")
	}
	unreached, err := flux.NewSystem(target.client).Reach(ctx, urls)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		report.Warn(fmt.Sprintf("cannot find out whether %s reaches %s: %v", target.Name, plain.Names(urls, mostNamed), err))
	}
	for _, at := range slices.Sorted(maps.Keys(unreached)) {
		report.Warn(fmt.Sprintf("%s does not reach %s, the API of a cloud that its clusters need: %v. If its providers use no proxy, undo "+
			"the pivot before the work changes hands: `fleetctl pivot --abort`", target.Name, at, unreached[at]))
	}
	return nil
}

// mostNamed bounds the names in a warning.
const mostNamed = 8
