//go:build integration

package leaving

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/handover"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/kube/kubetest"
)

// A detachment that fails before its journal has suspended Flux already, and names the command that resumes it. Once there is a journal,
// the same command goes on.
func TestDetachmentThatHasNotBegunSaysTheWayBack(t *testing.T) {
	ctx := t.Context()
	client, _ := kubetest.Start(t)
	if err := client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: handover.JournalKey.Namespace}}); err != nil {
		t.Fatal(err)
	}
	d := &detach{client: client, key: kube.Key{Namespace: "shop", Name: "shop"}}
	refused := diag.Errorf("change the policy", "it is refused")
	check := func(story string, says bool) {
		t.Helper()
		err := d.sayWayBack(ctx, refused)
		hint := diag.Hint(err)
		if !errors.Is(err, refused) || !strings.Contains(hint, "change the policy") ||
			strings.Contains(hint, "`fleetctl cluster detach shop/shop --abort` resumes its Flux") != says {
			t.Errorf("%s: %v (%s)", story, err, hint)
		}
	}
	check("without a journal", true)
	j := &handover.Journal{
		FormatVersion: "1", ID: "a", Role: handover.RoleSource, Phase: handover.PhasePlanned, Detach: true, Select: []string{"shop/shop"},
	}
	content, err := json.Marshal(j)
	if err != nil {
		t.Fatal(err)
	}
	kept := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: handover.JournalKey.Namespace, Name: handover.JournalKey.Name},
		Data:       map[string][]byte{"journal": content},
	}
	if err := client.Create(ctx, kept); err != nil {
		t.Fatal(err)
	}
	check("with its journal", false)
	d.key.Name = "web"
	refused = diag.Errorf("change the policy", "it is refused")
	if hint := diag.Hint(d.sayWayBack(ctx, refused)); !strings.Contains(hint, "detach shop/web --abort") {
		t.Errorf("with the journal of another cluster: %s", hint)
	}
	if err := d.sayWayBack(ctx, nil); err != nil {
		t.Errorf("without an error: %v", err)
	}
}
