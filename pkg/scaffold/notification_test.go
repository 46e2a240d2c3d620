package scaffold_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"sigs.k8s.io/yaml"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/layout"
	"github.com/fleetctl/fleetctl/pkg/scaffold"
)

// notificationCRDs is the module with Flux's CRDs of notifications.
const notificationCRDs = "github.com/fluxcd/notification-controller@v1.9.3"

// validators returns the validators of Provider and Alert from Flux's own CRDs. They also refuse fields that the CRDs do not know.
func validators(t *testing.T) map[string]validation.SchemaValidator {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", notificationCRDs).Output()
	if err != nil {
		t.Fatal(err)
	}
	var download struct{ Dir string }
	if err := json.Unmarshal(out, &download); err != nil {
		t.Fatal(err)
	}
	all := map[string]validation.SchemaValidator{}
	for _, plural := range []string{"providers", "alerts"} {
		content, err := os.ReadFile(filepath.Join(download.Dir, "config", "crd", "bases", "notification.toolkit.fluxcd.io_"+plural+".yaml"))
		if err != nil {
			t.Fatal(err)
		}
		var crd apiextensionsv1.CustomResourceDefinition
		if err := yaml.Unmarshal(content, &crd); err != nil {
			t.Fatal(err)
		}
		for _, version := range crd.Spec.Versions {
			if version.Name != "v1beta3" {
				continue
			}
			var schema apiextensions.JSONSchemaProps
			if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(version.Schema.OpenAPIV3Schema,
				&schema, nil); err != nil {
				t.Fatal(err)
			}
			strict(&schema)
			if all[crd.Spec.Names.Kind], _, err = validation.NewSchemaValidator(&schema); err != nil {
				t.Fatal(err)
			}
		}
	}
	if len(all) != 2 {
		t.Fatal("the CRDs have other versions now")
	}
	return all
}

// strict makes the schema refuse unknown fields of spec.
func strict(schema *apiextensions.JSONSchemaProps) {
	spec := schema.Properties["spec"]
	spec.AdditionalProperties = &apiextensions.JSONSchemaPropsOrBool{Allows: false}
	schema.Properties["spec"] = spec
}

// The objects of notifications are valid for Flux's CRDs.
func TestNotificationsAreValid(t *testing.T) {
	known := validators(t)
	for _, n := range append([]v1alpha1.Notification{
		{Name: "every", Type: v1alpha1.NotifySlack, Channel: "#ops", Severity: "info", Environments: []string{"dev", "prod"}, Secret: "x"},
		{Name: "clear", Type: v1alpha1.NotifyWebhook, Address: "https://example.com/a?b=c&d=%20"},
	}, ofEachType()...) {
		file, err := scaffold.Notification(scaffold.NotificationOptions{
			Notification: n, Fleet: "acme", ManagementCluster: "mgmt", Layout: layout.Layout{Cloud: "docker", Generation: "v1"},
			GitURL:  "git@github.com:acme/fleet.git",
			Sources: []string{"release", "flux-system", "release"},
		})
		if err != nil {
			t.Fatal(err)
		}
		for document := range strings.SplitSeq(string(file.Content), "\n---\n") {
			var object map[string]any
			if err := yaml.UnmarshalStrict([]byte(document), &object); err != nil {
				t.Fatalf("%v\n%s", err, document)
			}
			kind, _ := object["kind"].(string)
			if errs := validation.ValidateCustomResource(nil, object, known[kind]); len(errs) > 0 {
				t.Errorf("%s %s: %v\n%s", n.Name, kind, errs, document)
			}
		}
		if n.Type.IsCommitStatus() && !strings.Contains(string(file.Content), `address: "https://github.com/acme/fleet"`) {
			t.Errorf("%s: no repository:\n%s", n.Name, file.Content)
		}
	}
}

func ofEachType() []v1alpha1.Notification {
	var all []v1alpha1.Notification
	for _, kind := range v1alpha1.NotificationTypes() {
		all = append(all, v1alpha1.Notification{Name: string(kind), Type: kind, Secret: "notification-" + string(kind)})
	}
	return all
}

// Commit statuses need a forge, so a fleet without a remote cannot have them.
func TestNotificationWithoutRemote(t *testing.T) {
	_, err := scaffold.Notification(scaffold.NotificationOptions{
		Notification: v1alpha1.Notification{Name: "a", Type: v1alpha1.NotificationType(v1alpha1.ForgeGitHub)},
		Layout:       layout.Layout{Cloud: "docker", Generation: "v1"},
	})
	if err == nil || !strings.Contains(err.Error(), "no address at a forge") {
		t.Errorf("%v", err)
	}
}
