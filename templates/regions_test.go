package templates_test

import (
	"strings"
	"testing"
)

// The charts of AWS take regions and zones of all its partitions, also of those whose names begin with more than two letters.
func TestRegionsOfAWS(t *testing.T) {
	for _, flavour := range flavours(t) {
		if !strings.HasPrefix(flavour, "aws-") {
			continue
		}
		validate, example := validator(t, flavour), schemaOf(t, flavour).Examples[0]
		for _, region := range []string{"eu-central-1", "us-gov-west-1", "us-isob-east-1", "eusc-de-east-1"} {
			pools := []any{}
			list, _ := example["pools"].([]any)
			for _, pool := range list {
				fields, _ := pool.(map[string]any)
				zone := map[string]any{"zone": region + "a"}
				if flavour == "aws-eks" {
					zone = map[string]any{"zones": []any{region + "a"}}
				}
				pools = append(pools, overlay(fields, zone))
			}
			if err := validate(overlay(example, map[string]any{"region": region, "pools": pools})); err != nil {
				t.Errorf("%s refuses %s: %v", flavour, region, err)
			}
		}
	}
}
