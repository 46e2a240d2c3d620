package refused

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

// Clouds open new regions all the time, so no list here tells which regions exist. A name is reported if it does not have the form of all
// names of its cloud, or if one of its words is a letter away from a word that these names have. No new region has such a name.
var (
	awsRegionForm   = regexp.MustCompile(`^[a-z]{2,4}(-[a-z]+)+-[0-9]+$`)
	gcpRegionForm   = regexp.MustCompile(`^[a-z]+(-[a-z]+)+[0-9]+$`)
	azureRegionForm = regexp.MustCompile(`^[A-Za-z0-9]+$`)

	compass = []string{"north", "northeast", "east", "southeast", "south", "southwest", "west", "northwest", "central"}
	// continents begin the names of Google Cloud's regions. Shorter words, as in us-east1, are too close to each other.
	continents = []string{"africa", "asia", "australia", "europe", "northamerica", "southamerica"}
	// azureRegions are the long names of Azure's regions, without their numbers.
	azureRegions = []string{
		"australiacentral", "australiaeast", "australiasoutheast", "austriaeast", "belgiumcentral", "brazilsouth", "brazilsoutheast",
		"canadacentral", "canadaeast", "centralindia", "chilecentral", "chinaeast", "chinanorth", "denmarkeast", "eastasia", "francecentral",
		"francesouth", "germanynorth", "germanywestcentral", "indonesiacentral", "israelcentral", "italynorth", "japaneast", "japanwest",
		"jioindiacentral", "jioindiawest", "koreacentral", "koreasouth", "malaysiawest", "mexicocentral", "newzealandnorth", "northcentralus",
		"northeurope", "norwayeast", "norwaywest", "polandcentral", "qatarcentral", "southafricanorth", "southafricawest", "southcentralus",
		"southeastasia", "southindia", "spaincentral", "swedencentral", "swedensouth", "switzerlandnorth", "switzerlandwest", "taiwannorth",
		"uaecentral", "usgovarizona", "usgovtexas", "usgovvirginia", "westcentralus", "westeurope", "westindia",
	}
)

// awsRegion judges the name of a region of AWS.
func awsRegion(p part, field string) {
	name, ok := p.known(field)
	switch {
	case !ok:
	case !awsRegionForm.MatchString(name):
		p.refuse(field, fmt.Sprintf("%.60q is no region of AWS", name), "write it as `aws ec2 describe-regions` does, as in eu-central-1")
	default:
		p.spelled(field, name, "AWS", lastWord(name), compass)
	}
}

// gcpRegion judges the name of a region of Google Cloud.
func gcpRegion(p part, field string) {
	name, ok := p.known(field)
	switch {
	case !ok:
	case !gcpRegionForm.MatchString(name):
		p.refuse(field, fmt.Sprintf("%.60q is no region of Google Cloud", name),
			"write it as `gcloud compute regions list` does, as in europe-west3")
	case !p.spelled(field, name, "Google Cloud", regionWords(name)[:1], continents):
		p.spelled(field, name, "Google Cloud", lastWord(name), compass)
	}
}

// azureRegion judges the name of a location in Azure.
func azureRegion(p part) {
	const field = "location"
	name, ok := p.known(field)
	switch {
	case !ok:
	case !azureRegionForm.MatchString(name):
		p.refuse(field, fmt.Sprintf("%.60q is no location of Azure", name),
			"write it in lower case and without blanks, as in westeurope: `az account list-locations -o table` has it in the column Name")
	default:
		p.spelled(field, strings.ToLower(name), "Azure", []string{strings.TrimRight(strings.ToLower(name), "0123456789")}, azureRegions)
	}
}

// regionWords are the words of a region's name, without its number.
func regionWords(name string) []string {
	return strings.FieldsFunc(name, func(r rune) bool { return r < 'a' || r > 'z' })
}

func lastWord(name string) []string {
	words := regionWords(name)
	return words[len(words)-1:]
}

// spelled reports the first of the words that is a letter away from a known word. It returns whether it reported one.
func (p part) spelled(field, name, cloud string, words, known []string) bool {
	for _, word := range words {
		if slices.Contains(known, word) {
			continue
		}
		if meant := diag.OneLetterOff(word, known); meant != "" {
			p.refuse(field, fmt.Sprintf("%.60q is no region of %s", name, cloud),
				"did you mean "+strings.Replace(name, word, meant, 1)+"?")
			return true
		}
	}
	return false
}
