package aws

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fleetctl/fleetctl/pkg/cloud"
)

// ec2Error is how EC2 says an error.
func ec2Error(code string) string {
	return "<Response><Errors><Error><Code>" + code + "</Code><Message>because</Message></Error></Errors><RequestID>1</RequestID></Response>"
}

// What AWS does not answer is a problem with what to do next, and never an empty list.
func TestProblemsHaveHints(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status     int
		body       string
		text, hint string
	}{
		"denied":            {http.StatusForbidden, ec2Error("UnauthorizedOperation"), "list VPCs: UnauthorizedOperation", "allow this action"},
		"throttled":         {http.StatusServiceUnavailable, ec2Error("RequestLimitExceeded"), "LimitExceeded: because", "again in a minute"},
		"asked too often":   {http.StatusTooManyRequests, ec2Error("Throttling"), "Throttling: because", "again in a minute"},
		"ended":             {http.StatusBadRequest, ec2Error("RequestExpired"), "RequestExpired", "renew the credentials"},
		"a token that ends": {http.StatusForbidden, ec2Error("ExpiredToken"), "ExpiredToken", "renew the credentials"},
		"a region disabled": {http.StatusUnauthorized, ec2Error("AuthFailure"), "AuthFailure", "the region is enabled"},
		"not subscribed":    {http.StatusForbidden, ec2Error("OptInRequired"), "OptInRequired", "the region is enabled"},
		"an outage":         {http.StatusBadGateway, "<html>Bad gateway</html>", "list VPCs: the answer is 502 Bad Gateway", "again in a minute"},
		"empty":             {http.StatusOK, "", "list VPCs: ", "proxy"},
		"a page":            {http.StatusOK, "<!-- a -->\n<html>log in</html>", "list VPCs: ", "web page"},
		"a page as XML":     {http.StatusOK, `<?xml version="1.0"?><!DOCTYPE html><html/>`, "list VPCs: ", "proxy"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(c.status)
				_, _ = w.Write([]byte(c.body))
			}))
			t.Cleanup(server.Close)
			account, err := New(goodProfile, server.URL, []string{"eu-central-1"})
			if err != nil {
				t.Fatal(err)
			}
			found := account.Find(t.Context(), "id", nil)
			if len(found.Problems) == 0 {
				t.Fatal("nothing is told")
			}
			text, hint := "", ""
			for _, p := range found.Problems {
				text, hint = text+p.Text+"\n", hint+p.Hint+"\n"
			}
			if !strings.Contains(text, c.text) || !strings.Contains(hint+text, c.hint) {
				t.Errorf("%q, hint %q, want %q and %q", text, hint, c.text, c.hint)
			}
		})
	}
}

// A deletion waits while AWS is asked too often, as it waits for other resources.
func TestDeletionIsThrottled(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if asked.Add(1) <= 4 { // the SDK itself asks three times
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = w.Write([]byte(ec2Error("RequestLimitExceeded")))
			return
		}
		_, _ = fmt.Fprint(w, "<DeleteVpcResponse><return>true</return></DeleteVpcResponse>")
	}))
	t.Cleanup(server.Close)
	account, err := New(goodProfile, server.URL, []string{"eu-central-1"})
	if err != nil {
		t.Fatal(err)
	}
	account.pace = time.Millisecond
	if err := account.Delete(t.Context(), cloud.Resource{Kind: kindVPC, ID: "vpc-1", Region: "eu-central-1"}); err != nil {
		t.Error(err)
	}
}
