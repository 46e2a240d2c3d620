package aws

import (
	"net/http"
	"net/url"
	"testing"
)

// A key that was made a moment ago is unknown to AWS at first.
func TestSettleWaitsForANewKey(t *testing.T) {
	s := newSimulator(t)
	asked := 0
	s.answers["GetCallerIdentity"] = func(url.Values) (int, string) {
		if asked++; asked < 3 {
			return http.StatusForbidden, "<ErrorResponse><Error><Code>InvalidClientTokenId</Code><Message>no</Message></Error></ErrorResponse>"
		}
		return http.StatusOK, "<R><GetCallerIdentityResult><Account>1</Account></GetCallerIdentityResult></R>"
	}
	a, err := New(goodProfile, s.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	a.pace = 0
	a.Settle(t.Context())
	if asked != 3 {
		t.Errorf("asked %d times", asked)
	}
}

// Other refusals do not pass with time.
func TestSettleDoesNotWaitForARefusal(t *testing.T) {
	s := newSimulator(t)
	asked := 0
	s.answers["GetCallerIdentity"] = func(url.Values) (int, string) {
		asked++
		return http.StatusForbidden, "<ErrorResponse><Error><Code>SignatureDoesNotMatch</Code><Message>no</Message></Error></ErrorResponse>"
	}
	a, err := New(goodProfile, s.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	if a.Settle(t.Context()); asked != 1 {
		t.Errorf("asked %d times", asked)
	}
}
