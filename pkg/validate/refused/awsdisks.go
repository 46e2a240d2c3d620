package refused

import (
	"fmt"
	"strconv"
)

// awsLimits are the limits of one type of disk: its sizes in GiB, and the most operations per second and GiB; 0 is none.
type awsLimits struct{ smallest, largest, leastIOPS, mostIOPS, perGiB float64 }

// awsDisks are the limits of EBS. Older machines take fewer operations than mostIOPS.
var awsDisks = map[string]awsLimits{
	"gp2":      {1, 16384, 0, 0, 0},
	"gp3":      {1, 65536, 3000, 80000, 500},
	"io1":      {4, 16384, 100, 64000, 50},
	"io2":      {4, 65536, 100, 256000, 1000},
	"st1":      {125, 16384, 0, 0, 0},
	"sc1":      {125, 16384, 0, 0, 0},
	"standard": {1, 1024, 0, 0, 0},
}

// awsDisk judges size and operations of a disk. Of a disk without a type the AMI, or the provider, chooses it.
func awsDisk(p part, isRoot bool) {
	kind, known := p.known("type")
	limits, listed := awsDisks[kind]
	if known && !listed && !awsDiskType.MatchString(kind) {
		p.refuse("type", fmt.Sprintf("%.40q is no type of a disk in AWS", kind), "write gp3, or another one that EBS has")
	}
	if !known || !listed {
		return
	}
	if isRoot && (kind == "st1" || kind == "sc1") {
		p.refuse("type", "no machine starts from a disk of type "+kind, "set it to gp3")
		return
	}
	size, sized := p.number("size")
	if sized && (size < limits.smallest || size > limits.largest) {
		p.refuse("size", fmt.Sprintf("a disk of type %s has %.0f to %.0f GiB, and not %.0f", kind, limits.smallest, limits.largest, size),
			"give it such a size, or another type")
	}
	iops, given := p.number("iops")
	switch {
	case !given || iops == 0:
	case limits.mostIOPS == 0:
		p.refuse("iops", "a disk of type "+kind+" takes no iops", "take it away, or set type to gp3")
	case iops < limits.leastIOPS || iops > limits.mostIOPS:
		p.refuse("iops", fmt.Sprintf("%.0f is not between %.0f and %.0f", iops, limits.leastIOPS, limits.mostIOPS),
			"give as many as AWS has for type "+kind)
	case sized && iops > limits.leastIOPS && iops > size*limits.perGiB:
		p.refuse("iops", fmt.Sprintf("a disk of type %s has at most %.0f for each GiB, so one of %.0f GiB has %.0f", kind, limits.perGiB, size,
			max(size*limits.perGiB, limits.leastIOPS)), "lower it, or give the disk a larger size")
	}
	awsThroughput(p, kind, iops)
}

// awsThroughput reports a gp3 disk with more MiB per second than a quarter of its operations, which AWS refuses.
func awsThroughput(p part, kind string, iops float64) {
	const least, most, share = 3000, 2000, 4
	throughput, ok := p.number("throughput")
	if iops = max(iops, least); ok && kind == "gp3" && throughput <= most && throughput > iops/share {
		p.refuse("throughput", fmt.Sprintf("with %.0f iops a disk has at most %.0f MiB/s", iops, iops/share),
			fmt.Sprintf("set iops to %.0f or more", throughput*share))
	}
}

// awsSpot judges the options of a spot machine.
func awsSpot(p part) {
	spot := p.in("spotMarketOptions")
	if !p.given("spotMarketOptions") {
		return
	}
	if price, ok := spot.known("maxPrice"); ok {
		if n, err := strconv.ParseFloat(price, 64); err != nil || n <= 0 {
			spot.refuse("maxPrice", fmt.Sprintf("%.40q is no price", price),
				`write dollars per hour as a text, as in "0.05", or take it away: then it is at most the usual price`)
		}
	}
	if p.word("tenancy") == "host" {
		p.refuse("spotMarketOptions", "no spot machine runs on a host of its own", "take it away, or set tenancy to default or dedicated")
	}
}
