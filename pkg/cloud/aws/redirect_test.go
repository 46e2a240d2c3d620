package aws

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
)

// Credentials stay at the server that was asked, wherever it sends us.
func TestRedirects(t *testing.T) {
	for _, status := range []int{http.StatusMovedPermanently, http.StatusFound, http.StatusTemporaryRedirect, http.StatusPermanentRedirect} {
		t.Run(http.StatusText(status), func(t *testing.T) {
			var told atomic.Bool
			stranger := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { told.Store(true) }))
			t.Cleanup(stranger.Close)
			server := httptest.NewServer(
				http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, stranger.URL+r.URL.Path, status) }))
			t.Cleanup(server.Close)
			account, err := New(goodProfile, server.URL, []string{"eu-central-1"})
			if err != nil {
				t.Fatal(err)
			}
			if found := account.Find(t.Context(), "id", nil); len(found.Problems) == 0 {
				t.Error("no problem is reported")
			}
			// A question without a body is one that Go's client could ask again elsewhere.
			if _, err := account.in("eu-central-1").eks.DescribeCluster(t.Context(),
				&eks.DescribeClusterInput{Name: sdk.String("demo")}); err == nil {
				t.Error("a redirect is an answer")
			}
			if told.Load() {
				t.Error("the other server was asked")
			}
		})
	}
}
