package validate

import (
	"slices"
	"strings"
	"testing"
)

// regionFields are the kinds and fields that name a region, by cloud.
var regionFields = map[string][]string{
	"AWS":          {"AWSCluster region", "AWSClusterTemplate region", "AWSManagedControlPlane region"},
	"Google Cloud": {"GCPCluster region", "GCPClusterTemplate region", "GCPManagedCluster region", "GCPManagedControlPlane region"},
	"Azure":        {"AzureManagedControlPlane location"},
}

// regionsRefused are the findings of an object of each kind of a cloud that names this region.
func regionsRefused(t *testing.T, cloud, region string) (all []string) {
	t.Helper()
	for _, at := range regionFields[cloud] {
		kind, field, _ := strings.Cut(at, " ")
		found := refusedOf(t, kind, "{"+field+": "+region+"}")
		if len(found) > 1 || len(found) == 1 && !strings.Contains(found[0], field+": ") {
			t.Errorf("%s %s: %q", kind, region, found)
		}
		all = append(all, strings.Join(found, ""))
	}
	return all
}

// A name that no region can have is reported, once, at the field.
func TestRefusedRegions(t *testing.T) {
	for cloud, regions := range map[string][]string{
		"AWS": {
			"eu-centrall-1", "eu-cental-1", "eu-wset-1", "us-northeas-1", "eusc-de-est-1", "us-gov-wes-1", "eu-central-1a", "eu_central_1",
			"eu-central1", "EU-CENTRAL-1", "europe-west3", "westeurope", `"eu-west-1 "`, "frankfurt",
		},
		"Google Cloud": {
			"europ-west3", "eurpoe-west3", "europe-wst3", "us-centrl1", "asia-northeest1", "europe-west3-a", "europe-west", "eu-central-1",
			"westeurope", "Europe-West3",
		},
		"Azure": {"westeurop", "westuerope", "germanywestcentrall", `"West Europe"`, "west-europe", "eu-central-1"},
	} {
		for _, region := range regions {
			if found := regionsRefused(t, cloud, region); slices.Contains(found, "") {
				t.Errorf("%s in %s is not reported by all kinds: %q", region, cloud, found)
			}
		}
	}
}

// No name of a region that exists is reported, and none of a new one: another number, country or city, or a part of a cloud of its own.
func TestRegionsNotRefused(t *testing.T) {
	for cloud, regions := range map[string]string{
		"AWS": `us-east-1 us-east-2 us-west-1 us-west-2 af-south-1 ap-east-1 ap-east-2 ap-south-1 ap-south-2 ap-northeast-1 ap-northeast-2
			ap-northeast-3 ap-southeast-1 ap-southeast-2 ap-southeast-3 ap-southeast-4 ap-southeast-5 ap-southeast-6 ap-southeast-7 ca-central-1
			ca-west-1 eu-central-1 eu-central-2 eu-west-1 eu-west-2 eu-west-3 eu-south-1 eu-south-2 eu-north-1 il-central-1 me-south-1
			me-central-1 mx-central-1 sa-east-1 sa-west-1 cn-north-1 cn-northwest-1 us-gov-east-1 us-gov-west-1 us-iso-east-1 us-isob-east-1
			us-isof-south-1 eu-isoe-west-1 eusc-de-east-1 nz-north-12 eu-berlin-1`,
		"Google Cloud": `africa-south1 asia-east1 asia-east2 asia-northeast1 asia-northeast3 asia-south1 asia-south2 asia-southeast1
			asia-southeast2 australia-southeast1 australia-southeast2 europe-central2 europe-north1 europe-north2 europe-southwest1 europe-west1
			europe-west10 europe-west12 me-central1 me-central2 me-west1 northamerica-northeast1 northamerica-south1 southamerica-east1
			southamerica-west1 us-central1 us-east1 us-east4 us-south1 us-west8 u-germany-northeast1 u-france-east1 antarctica-central1`,
		"Azure": `eastus eastus2 eastus2euap eastus3 westus westus2 westus3 centralus centraluseuap northcentralus southcentralus
			southcentralus2 westcentralus canadacentral canadaeast brazilsouth brazilsoutheast brazilus mexicocentral chilecentral northeurope
			westeurope uksouth ukwest ukeast francecentral francesouth germanywestcentral germanynorth norwayeast norwaywest swedencentral
			switzerlandnorth switzerlandwest polandcentral italynorth spaincentral austriaeast belgiumcentral denmarkeast finlandcentral
			greececentral eastasia southeastasia australiaeast australiasoutheast australiacentral australiacentral2 japaneast japanwest
			koreacentral koreasouth centralindia southindia westindia southcentralindia jioindiacentral jioindiawest indonesiacentral
			malaysiawest malaysiasouth newzealandnorth taiwannorth taiwannorthwest uaenorth uaecentral qatarcentral israelcentral
			israelnorthwest saudiarabiaeast southafricanorth southafricawest chinaeast chinaeast2 chinaeast3 chinanorth chinanorth3
			usgovvirginia usgovtexas usgovarizona usdodcentral usdodeast usseceast usnatwest bleufrancecentral deloscloudgermanynorth WestEurope`,
	} {
		for region := range strings.FieldsSeq(regions + " ${REGION}") {
			if found := strings.Join(regionsRefused(t, cloud, `"`+region+`"`), ""); found != "" {
				t.Errorf("%s in %s is reported: %s", region, cloud, found)
			}
		}
	}
}
