//go:build integration

package handover

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/kube/kubetest"
)

// A journal that somebody has damaged is an error with the way out: the other side has the journal, too.
func TestDamagedJournal(t *testing.T) {
	ctx := t.Context()
	client, _ := kubetest.Start(t)
	if err := client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: JournalKey.Namespace}}); err != nil {
		t.Fatal(err)
	}
	for _, data := range []map[string][]byte{{}, {"journal": []byte("garbage")}} {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: JournalKey.Namespace, Name: JournalKey.Name}, Data: data}
		if err := client.Create(ctx, secret); err != nil {
			t.Fatal(err)
		}
		j, err := ReadJournal(ctx, client)
		if err == nil || !strings.Contains(diag.Hint(err), "`kubectl delete secret fleetctl-handover --namespace fleetctl-system`") {
			t.Errorf("%v: %+v, %v: %s", data, j, err, diag.Hint(err))
		}
		if err := client.WithWatch.Delete(ctx, secret); err != nil {
			t.Fatal(err)
		}
	}
}
