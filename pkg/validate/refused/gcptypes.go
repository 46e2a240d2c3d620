package refused

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
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

// gcpDisk judges whether the machine's series supports the type of its disk.
func gcpDisk(p part) {
	kind, known := p.known("instanceType")
	series, _, _ := strings.Cut(kind, "-")
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
