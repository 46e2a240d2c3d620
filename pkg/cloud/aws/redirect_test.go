package aws

import (
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"

	"github.com/fleetctl/fleetctl/pkg/cloud"
)

// Credentials do not follow a redirect to another server.
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
			// Go's client could repeat a request without a body at another server.
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

// An error quotes an answer of AWS, or of a server in its place, in brief and without the credential of the request.
func TestHostileAnswers(t *testing.T) {
	const token = "canary-of-a-session-token"
	profile := base64.StdEncoding.EncodeToString(
		[]byte("[default]\naws_access_key_id = AKIA\naws_secret_access_key = s\naws_session_token = " + token + "\n"))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprintf(w, "<Response><Errors><Error><Code>AccessDenied</Code><Message>%s %s</Message></Error></Errors></Response>",
			r.Header.Get("X-Amz-Security-Token"), strings.Repeat("long ", 1<<16))
	}))
	t.Cleanup(server.Close)
	account, err := New(profile, server.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	found := account.Find(t.Context(), "id", nil)
	if len(found.Problems) == 0 {
		t.Fatal("no problem is reported")
	}
	for _, problem := range found.Problems {
		if strings.Contains(problem.Text, token) || len(problem.Text) > 2*cloud.MaxSaid {
			t.Errorf("%d bytes: %.300q", len(problem.Text), problem.Text)
		}
	}
	if !strings.Contains(found.Problems[0].Text, "AccessDenied: ***") {
		t.Errorf("problem: %.300q", found.Problems[0].Text)
	}
}

// What AWS, or who stands in for it, never ends to say is not kept in memory.
func TestAnswersWithoutEnd(t *testing.T) {
	before := maxAnswer
	maxAnswer = 1 << 20
	t.Cleanup(func() { maxAnswer = before })
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, err := io.WriteString(w, "<Response>")
		for piece := strings.Repeat("<a></a>", 1<<12); err == nil; {
			_, err = io.WriteString(w, piece)
		}
	}))
	t.Cleanup(server.Close)
	account, err := New(goodProfile, server.URL, []string{"eu-central-1"})
	if err != nil {
		t.Fatal(err)
	}
	found := account.Find(t.Context(), "id", nil)
	if len(found.Problems) == 0 || !strings.Contains(fmt.Sprint(found.Problems), "the answer is too large: more than 1 MiB") {
		t.Errorf("problems: %.500v", found.Problems)
	}
}

// A list that always names another page ends with a problem, and what was found before stays in the result.
func TestListsWithoutEnd(t *testing.T) {
	before := mostPages
	mostPages = 30
	t.Cleanup(func() { mostPages = before })
	for name, tc := range map[string]struct {
		next func(page int) string
		says string
	}{
		"the same page": {func(int) string { return "again" }, "list VPCs: the list never ends: a page names a page before it"},
		"in a circle":   {func(page int) string { return fmt.Sprint(page % 3) }, "list VPCs: the list never ends: a page names a page before it"},
		"new pages":     {func(page int) string { return fmt.Sprint(page) }, "list VPCs: the list does not end after 30 pages"},
	} {
		t.Run(name, func(t *testing.T) {
			s, asked := newSimulator(t), 0
			s.answers["DescribeVpcs"] = func(url.Values) (int, string) {
				asked++
				if asked > 100 { // without a bound, the test ends nevertheless
					return http.StatusOK, "<DescribeVpcsResponse></DescribeVpcsResponse>"
				}
				return http.StatusOK, fmt.Sprintf(`<DescribeVpcsResponse><vpcSet><item><vpcId>vpc-%d</vpcId>%s</item></vpcSet>`+
					`<nextToken>%s</nextToken></DescribeVpcsResponse>`, asked, tagSet, tc.next(asked))
			}
			found := s.account(t, "eu-central-1").Find(t.Context(), "id", nil)
			if len(found.Problems) != 1 || !strings.HasPrefix(found.Problems[0].Text, tc.says) {
				t.Errorf("after %d pages: %.300v", asked, found.Problems)
			}
			if len(found.Resources) == 0 {
				t.Error("what was found is lost")
			}
		})
	}
}

// A server that names no region is not an account without resources.
func TestNoRegions(t *testing.T) {
	found := newSimulator(t).account(t).Find(t.Context(), "id", nil)
	if fmt.Sprint(found.Regions) != "[eu-central-1]" || !strings.Contains(fmt.Sprint(found.Problems), "the answer names none") {
		t.Errorf("%v: %v", found.Regions, found.Problems)
	}
}
