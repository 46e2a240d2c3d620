package handover

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/progress"
)

func sideAt(t *testing.T, name, server string) Side {
	t.Helper()
	client, err := kube.New([]byte("apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: \""+server+"\"}}]\n"+
		"contexts: [{name: c, context: {cluster: c}}]\ncurrent-context: c\n"), kube.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return Side{Name: name, Client: client}
}

func answerOf(server string) func() string { return func() string { return "an answer of " + server } }

func TestAttendTellsWhoIsSilent(t *testing.T) {
	const here, there = "https://10.0.0.1:6443", "https://10.0.0.2:6443"
	sides := []Side{sideAt(t, "here", here), sideAt(t, "there", there)}
	synctest.Test(t, func(t *testing.T) {
		var told []string
		ctx, tell, _ := attend(t.Context(), func(p Progress) { told = append(told, p.String()) }, sides...)
		tell(Progress{Detail: "copying", Done: 1, Total: 9})
		quick := progress.Wait(ctx, answerOf(here))
		time.Sleep(patience - time.Second)
		quick()
		first, second := progress.Wait(ctx, answerOf(there)), progress.Wait(ctx, answerOf(there))
		elsewhere := progress.Wait(ctx, answerOf("https://10.0.0.3:6443"))
		time.Sleep(2 * patience)
		tell(Progress{Detail: "copying", Done: 2, Total: 9})
		first()
		second()
		elsewhere()
		const silent = "there does not answer at " + there + " (copying: "
		const remedy = "); wait, or interrupt this and run the same command later"
		want := []string{"copying: 1 of 9", silent + "1 of 9" + remedy, silent + "2 of 9" + remedy, "copying: 2 of 9"}
		if !slices.Equal(told, want) {
			t.Errorf("it told %q, not %q", told, want)
		}
	})
}

func TestAttendNamesTheSideOfAnError(t *testing.T) {
	const here, there = "https://10.0.0.1:6443", "https://10.0.0.2:6443"
	gone := func(server string) error {
		return &url.Error{Op: "Get", URL: server + "/api", Err: syscall.ECONNREFUSED}
	}
	for name, c := range map[string]struct {
		there string
		err   error
		want  string
	}{
		"one side":              {there, errors.Join(errors.New("before"), gone(there)), "there"},
		"another server":        {there, gone("https://10.0.0.3:6443"), ""},
		"an answer":             {there, errors.New("no"), ""},
		"two behind one server": {here + "/k8s/clusters/two", gone(here), ""},
	} {
		_, _, named := attend(t.Context(), nil, sideAt(t, "here", here), sideAt(t, "there", c.there))
		err := named(c.err)
		silent, ok := errors.AsType[*SilentError](err)
		if ok != (c.want != "") || ok && silent.Side != c.want || !errors.Is(err, c.err) {
			t.Errorf("%s: %v, not of %q", name, err, c.want)
		}
		if again := named(err); again != err { //nolint:errorlint // it must be the same
			t.Errorf("%s: named twice: %v", name, again)
		}
	}
}

// TestAttendNamesTheSideThatRefusesTheLogin has a server that refuses the credential, and one that takes it.
func TestAttendNamesTheSideThatRefusesTheLogin(t *testing.T) {
	expired := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }))
	defer expired.Close()
	valid := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) }))
	defer valid.Close()
	here, there := sideAt(t, "here", valid.URL), sideAt(t, "there", expired.URL)
	ctx, _, named := attend(t.Context(), nil, here, there)
	_, absent := here.Client.ServerVersion(ctx)
	if err := named(absent); err != absent || absent == nil { //nolint:errorlint // it must be the same
		t.Errorf("an answer became %v", err)
	}
	_, refused := there.Client.ServerVersion(ctx)
	err := named(fmt.Errorf("fence it: %w", refused))
	if err == nil || !strings.Contains(err.Error(), "the API server of there at "+expired.URL) ||
		!strings.Contains(diag.Hint(err), "get a new kubeconfig of there") || !errors.Is(err, refused) {
		t.Errorf("it says %v (%s)", err, diag.Hint(err))
	}
	if again := named(err); again != err { //nolint:errorlint // it must be the same
		t.Errorf("named twice: %v", again)
	}
}
