package management

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fleetctl/fleetctl/pkg/state"
)

// Management clusters that do not answer take no time of the others: each is asked for as long as --timeout says.
func TestCredentialsOfClustersThatDoNotAnswer(t *testing.T) {
	end := make(chan struct{})
	silent := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-end }))
	t.Cleanup(func() {
		close(end)
		silent.Close()
	})
	refusing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }))
	t.Cleanup(refusing.Close)
	at := func(name, url string) *Target {
		file := filepath.Join(t.TempDir(), name)
		kubeconfig := fmt.Sprintf("apiVersion: v1\nkind: Config\ncurrent-context: a\nclusters: [{name: a, cluster: {server: %s}}]\n"+
			"users: [{name: a, user: {}}]\ncontexts: [{name: a, context: {cluster: a, user: a}}]\n", url)
		if err := os.WriteFile(file, []byte(kubeconfig), 0o600); err != nil {
			t.Fatal(err)
		}
		return &Target{Name: name, given: &state.Given{Kubeconfig: file}}
	}
	var all []*Target
	for i := range 4 { // as many as are asked at once
		all = append(all, at(fmt.Sprintf("silent%d", i), silent.URL))
	}
	all = append(all, at("last", refusing.URL))
	report := Credentials(t.Context(), all, time.Hour, time.Second/2, time.Now())
	if report.Unread() != len(all) {
		t.Fatalf("%+v", report)
	}
	for _, c := range report.Clusters[:4] {
		if !strings.Contains(c.Error, "deadline exceeded") {
			t.Errorf("%s: %s", c.Name, c.Error)
		}
	}
	if last := report.Clusters[4]; strings.Contains(last.Error, "deadline exceeded") {
		t.Errorf("%s was not asked: %s", last.Name, last.Error)
	}
}
