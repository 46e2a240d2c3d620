package scaffold

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// The clouds' command lines take each document as it is: one document of JSON, and nothing beside it.
func TestCloudSideIsJSON(t *testing.T) {
	aws := IdentityOptions{
		Name: "prod", Provider: IdentityAWS, Environments: []string{"prod"}, RoleARN: "arn:aws:iam::111122223333:role/fleet-prod",
	}
	issued := aws
	issued.Issuer = "https://oidc.example.com/mgmt"
	azure := IdentityOptions{
		Name: "prod", Provider: IdentityAzure, Environments: []string{"prod"}, ObjectNamespace: "azure-identities",
		TenantID: "11111111-2222-3333-4444-555555555555", ClientID: "66666666-7777-8888-9999-000000000000",
	}
	for name, c := range map[string]struct {
		options IdentityOptions
		files   []string
	}{
		"a role":               {aws, []string{"out/cloud.json"}},
		"a role and an issuer": {issued, []string{"out/cloud.json", "out/cloud-controllers.json"}},
		"workload identity":    {azure, []string{"out/cloud.json", "out/cloud-azureserviceoperator-default.json"}},
	} {
		documents, err := CloudSide(c.options)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var files []string
		for _, d := range documents {
			files = append(files, d.File("out/cloud.json"))
			if !json.Valid([]byte(d.Content)) {
				t.Errorf("%s: %s is not JSON:\n%s", name, d.Title, d.Content)
			}
			if !strings.HasPrefix(d.String(), "# ") || !strings.HasSuffix(d.String(), ":\n"+d.Content) {
				t.Errorf("%s: shown as\n%s", name, d)
			}
		}
		if !slices.Equal(files, c.files) {
			t.Errorf("%s: %q, want %q", name, files, c.files)
		}
	}
}
