package refused

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

var gcpTypeName = regexp.MustCompile(`^[a-z][a-z0-9]*(-[a-z0-9]+)+$`)

// gcpHyperdisk are the machine series that support only hyperdisks.
var gcpHyperdisk = []string{"c4", "c4a", "c4d", "n4"}

// gcpType judges the form of a machine type, which may be a path.
func gcpType(p part, field string) {
	if name, ok := p.known(field); ok && !strings.Contains(name, "/") && !gcpTypeName.MatchString(name) {
		p.refuse(field, fmt.Sprintf("%.60q is no type of a machine in Google Cloud", name),
			"write it as `gcloud compute machine-types list` has it, as in e2-standard-4")
	}
}

// gcpDisks are types of disks. New ones have other names behind the first word.
var gcpDisks = []string{
	"pd-standard", "pd-ssd", "pd-balanced", "pd-extreme", "local-ssd", "hyperdisk-balanced", "hyperdisk-extreme", "hyperdisk-throughput",
}

var (
	gcpDiskForm = regexp.MustCompile(`^(pd|local|hyperdisk)-[a-z-]+$`)
	gcpProjects = regexp.MustCompile(`^([a-z0-9.-]+:)?[a-z0-9]([a-z0-9-]*[a-z0-9])?$`)
)

// gcpDiskType judges the type of a disk.
func gcpDiskType(p part, field string) {
	name, ok := p.known(field)
	if !ok {
		return
	}
	meant := ""
	if !slices.Contains(gcpDisks, name) {
		meant = diag.OneLetterOff(name, gcpDisks)
	}
	switch {
	case meant != "":
		p.refuse(field, fmt.Sprintf("%.60q is no type of a disk in Google Cloud", name), "did you mean "+meant+"?")
	case !gcpDiskForm.MatchString(name):
		p.refuse(field, fmt.Sprintf("%.60q is no type of a disk in Google Cloud", name),
			"take one such as pd-balanced, pd-ssd or hyperdisk-balanced")
	}
}

// gcpProject judges the id of a project.
func gcpProject(p part) {
	if id, ok := p.known("project"); ok && !gcpProjects.MatchString(id) {
		p.refuse("project", fmt.Sprintf("%.60q is no id of a project in Google Cloud", id),
			"write the PROJECT_ID that `gcloud projects list` has")
	}
}

// gcpDisk judges whether the machine's series supports the type of its disk.
func gcpDisk(p part) {
	kind, known := p.known("instanceType")
	series, _, _ := strings.Cut(kind, "-")
	gcpDiskType(p, "rootDeviceType")
	for _, each := range p.each("additionalDisks") {
		gcpDiskType(each, "deviceType")
	}
	disk := p.word("rootDeviceType")
	if !known || !slices.Contains(gcpHyperdisk, series) || strings.HasPrefix(disk, "hyperdisk-") || strings.Contains(disk, "${") {
		return
	}
	if disk == "" {
		disk = "pd-standard"
	}
	p.refuse("rootDeviceType", fmt.Sprintf("machines of the series %s have hyperdisks alone, and the type of the disk is %.40s", series, disk),
		"set it to hyperdisk-balanced, or take another series")
}

// gkeLocation judges the location of the control plane: the region itself, or one of its zones.
func gkeLocation(p part) {
	region, given := p.known("region")
	place, ok := p.known("location")
	if ok && given && place != region && !strings.HasPrefix(place, region+"-") {
		p.refuse("location", fmt.Sprintf("%.60q is neither the region %.40s nor one of its zones", place, region),
			"write the region, or take a zone of it: `gcloud compute zones list`")
	}
}
