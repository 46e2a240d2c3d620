package fleetrepo

import (
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/scaffold"
)

// A cloud that is to trust another issuer than the management cluster has refuses each of its tokens, and says so only in its own log.
func TestIdentityForTheIssuerOfItsManagementCluster(t *testing.T) {
	const issuer = "https://oidc.example.com/mgmt"
	declares := v1alpha1.Host{Type: v1alpha1.HostEmbedded, Embedded: &v1alpha1.EmbeddedHost{ServiceAccountIssuer: issuer}}
	for name, tc := range map[string]struct {
		host            v1alpha1.Host
		given           string
		note, err, hint string
	}{
		"the same":        {declares, issuer, "", "", ""},
		"with a slash":    {declares, issuer + "/", "", "management cluster a issues its tokens as " + issuer, "give --issuer " + issuer},
		"none yet":        {v1alpha1.Host{Type: v1alpha1.HostEmbedded}, issuer, "`serviceAccountIssuer: " + issuer + "`", "", ""},
		"none at all":     {v1alpha1.Host{Type: v1alpha1.HostEmbedded}, "", "", "", ""},
		"another cluster": {v1alpha1.Host{Type: v1alpha1.HostExisting}, issuer + "/", "", "", ""},
	} {
		fleet := &v1alpha1.Fleet{Spec: v1alpha1.FleetSpec{ManagementClusters: []v1alpha1.ManagementCluster{
			{Name: "a", Cloud: "azure", Generation: "v1", Host: tc.host, Providers: []v1alpha1.Provider{{Name: "azure"}}},
		}}}
		e, err := New(t.TempDir(), fleet).AddIdentity("a", scaffold.IdentityOptions{
			Name: "prod", Provider: scaffold.IdentityAzure, Namespaces: []string{"shop"}, Issuer: tc.given, ObjectNamespace: "azure-identities",
			TenantID: "11111111-2222-3333-4444-555555555555", ClientID: "66666666-7777-8888-9999-000000000000",
		})
		switch {
		case tc.err != "":
			if err == nil || !strings.Contains(err.Error(), tc.err) || diag.Hint(err) != tc.hint {
				t.Errorf("%s: %v, hint %q", name, err, diag.Hint(err))
			}
		case err != nil:
			t.Errorf("%s: %v", name, err)
		case strings.Contains(strings.Join(e.Notes, "\n"), "serviceAccountIssuer") != (tc.note != "") ||
			!strings.Contains(strings.Join(e.Notes, "\n"), tc.note):
			t.Errorf("%s: %q", name, e.Notes)
		}
	}
}
