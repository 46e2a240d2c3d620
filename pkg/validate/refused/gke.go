package refused

import (
	"fmt"
	"net/netip"
	"regexp"
	"strings"
)

// gkeZone is what a zone has behind its region.
var gkeZone = regexp.MustCompile(`-(ai[0-9]+)?[a-z]$`)

// autoscalerMin is the annotation with the least number of nodes of a pool that Cluster API's autoscaler scales.
const autoscalerMin = "cluster.x-k8s.io/cluster-api-autoscaler-node-group-min-size"

// longestGKEName is the longest name of a cluster or a pool, in characters.
const longestGKEName = 40

func gkeControlPlane(p part) {
	gcpRegion(p, "region")
	gkeLocation(p)
	gkeName(p, "clusterName", "a cluster")
	gcpProject(p)
	// A ClusterClass patches the location of a template.
	if place, ok := p.known("location"); ok && !p.isTemplate() && !gcpRegionForm.MatchString(gkeZone.ReplaceAllString(place, "")) {
		p.refuse("location", fmt.Sprintf("%.60q is neither a region of Google Cloud nor a zone", place),
			"write it as `gcloud compute regions list` does, as in europe-west3")
	}
	gkeService(p, "loggingService", "logging.googleapis.com/kubernetes")
	gkeService(p, "monitoringService", "monitoring.googleapis.com/kubernetes")
	gkePlane(p.in("clusterNetwork").in("privateCluster"))
	if p.has("enableAutopilot") {
		if !p.has("releaseChannel") {
			p.refuse("enableAutopilot", "a cluster with Autopilot needs a release channel", "add releaseChannel, such as regular")
		}
		for _, field := range []string{"loggingService", "monitoringService"} {
			if p.given(field) {
				p.refuse(field, "Autopilot chooses it", "take it away")
			}
		}
	}
	p.together("controlPlaneVersion", "version")
}

func gkePool(p part) {
	gcpType(p, "machineType")
	gcpType(p, "instanceType")
	p.taintsOnce("kubernetesTaints")
	gcpLabels(p)
	gkeName(p, "nodePoolName", "a pool")
	p.labelsOfNodes("kubernetesLabels")
	for _, field := range []string{"diskSizeGb", "localSsdCount", "maxPodsPerNode"} {
		if n, ok := p.number(field); ok && n < 0 {
			p.refuse(field, "it is less than 0", "give 0 or more")
		}
	}
	const smallestDisk = 10
	if size, ok := p.number("diskSizeGb"); ok && size > 0 && size < smallestDisk {
		p.refuse("diskSizeGb", fmt.Sprintf("%.0f is less than %d, the smallest disk of a node", size, smallestDisk), "give 10 or more")
	}
	scaling := p.in("scaling")
	if enabled, is := scaling.fields["enableAutoscaling"].(bool); is && !enabled {
		for _, field := range []string{"minCount", "maxCount", "locationPolicy"} {
			if scaling.given(field) {
				scaling.refuse(field, "nothing scales where enableAutoscaling is false", "remove one of the two")
			}
		}
	}
	least, hasLeast := scaling.number("minCount")
	most, hasMost := scaling.number("maxCount")
	switch {
	case hasLeast && least < 0:
		scaling.refuse("minCount", "it is less than 0", "give 0 or more")
	case hasLeast && hasMost && most < least:
		scaling.refuse("maxCount", fmt.Sprintf("%.0f is less than minCount, %.0f", most, least), "give the larger one to maxCount")
	}
}

// gkeName judges the name of a cluster or of a pool in GKE.
func gkeName(p part, field, what string) {
	name, ok := p.known(field)
	switch {
	case !ok:
	case len(name) > longestGKEName:
		p.refuse(field, fmt.Sprintf("it has %d characters, and Google Cloud takes %d", len(name), longestGKEName), "shorten it")
	case !gcpName.MatchString(name):
		p.refuse(field, fmt.Sprintf("%.80q is no name of %s in Google Cloud", name, what),
			"use lower-case letters, digits and -, that begin with a letter and do not end with -")
	}
}

// gkeService judges the service that gets the logs or the metrics of a cluster, as Validate in CAPG's
// exp/api/v1beta1/gcpmanagedcontrolplane_types.go does. The webhook asks it for each update, and so refuses each.
func gkeService(p part, field, only string) {
	if name, ok := p.known(field); ok && name != "none" && name != only {
		p.refuse(field, fmt.Sprintf("%.80q is none that the provider knows", name), "write "+only+" or none")
	}
}

// gkePlane judges the range for the control plane of a private cluster.
func gkePlane(p part) {
	const size = 28
	text, _ := p.known("controlPlaneCidrBlock")
	if prefix, err := netip.ParsePrefix(text); err == nil && prefix.Bits() != size {
		p.refuse("controlPlaneCidrBlock", fmt.Sprintf("Google Cloud takes a range of /%d, and it is /%d", size, prefix.Bits()),
			"give it a range of this size")
	}
}

// gkePoolOf judges a pool together with its MachinePool and its control plane: CAPG's cloud/services/container/clusters/reconcile.go makes
// no cluster with Autopilot that has pools, and cloud/services/shared/machinepool.go none with a number of nodes that its zones cannot
// share. The provider takes each cluster for one of a region, also where its location is a zone.
func gkePoolOf(owner, p, plane part, scaled bool) {
	const zonesOfRegion = 3
	if plane.fields["enableAutopilot"] == true {
		p.refuse("", fmt.Sprintf("the control plane %.80s has Autopilot, and the provider makes no such cluster where it has pools",
			plane.object.Name), "remove this pool and its MachinePool, or set enableAutopilot to false")
		return
	}
	replicas, counted := owner.number("replicas")
	if !owner.given("replicas") {
		replicas, counted = 1, !scaled // Cluster API's own; for the autoscaler it takes the least number
	}
	zones := zonesOfRegion
	if list, is := p.fields["nodeLocations"].([]any); is && len(list) > 0 {
		zones = len(list)
	}
	place, known := plane.known("location")
	if !counted || !known || strings.Count(gkeZone.ReplaceAllString(place, ""), "-") != 1 || int(replicas)%zones == 0 {
		return
	}
	owner.refuse(replicasField(owner), fmt.Sprintf("the provider makes no pool of %.0f nodes in %d zones", replicas, zones),
		fmt.Sprintf("write a multiple of %d, or as many nodeLocations in %s as it can be shared by", zones, p.object.Kind))
}

// replicasField is the field with the number of nodes, or the object itself if it has none.
func replicasField(owner part) string {
	if owner.given("replicas") {
		return "replicas"
	}
	return ""
}

// gkeLocations judges the zones of a pool.
func gkeLocations(p, plane part) {
	place, known := plane.known("location")
	region := gkeZone.ReplaceAllString(place, "")
	list, _ := p.fields["nodeLocations"].([]any)
	for i, item := range list {
		zone, _ := item.(string)
		if known && gcpRegionForm.MatchString(region) && zone != "" && !strings.Contains(zone, "${") && !strings.HasPrefix(zone, region+"-") {
			p.refuse(fmt.Sprintf("nodeLocations[%d]", i), fmt.Sprintf("%.60q is no zone of the region %.40s, where the cluster is", zone, region),
				"take one of this region: `gcloud compute zones list`")
		}
	}
}
