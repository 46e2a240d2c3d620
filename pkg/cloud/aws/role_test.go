package aws

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

const stagingRole = "arn:aws:iam::111122223333:role/fleet/staging"

func TestRoleAccount(t *testing.T) {
	for arn, want := range map[string]string{
		stagingRole: "111122223333", "arn:aws-cn:iam::444455556666:role/x": "444455556666",
		"": "", "arn:aws:iam::111122223333:user/x": "", "arn:aws:iam::${ACCOUNT}:role/x": "", "x arn:aws:iam::111122223333:role/x": "",
	} {
		if got := (Role{ARN: arn}).Account(); got != want {
			t.Errorf("%s: %q, want %q", arn, got, want)
		}
	}
}

// session answers for AssumeRole with a session that ends after a time.
func session(n int, lasts time.Duration) string {
	return fmt.Sprintf(`<AssumeRoleResponse><AssumeRoleResult><Credentials><AccessKeyId>ASIA%d</AccessKeyId><SecretAccessKey>`+secretKey+
		`</SecretAccessKey><SessionToken>token</SessionToken><Expiration>%s</Expiration></Credentials></AssumeRoleResult></AssumeRoleResponse>`,
		n, time.Now().Add(lasts).UTC().Format(time.RFC3339))
}

// An account is asked as the role in it, which the external ID and the name of the session let in. A session that is about to end is
// replaced.
func TestAssume(t *testing.T) {
	s := newSimulator(t)
	var sessions []url.Values
	lasts := time.Hour
	s.answers["AssumeRole"] = func(form url.Values) (int, string) {
		sessions = append(sessions, form)
		return http.StatusOK, session(len(sessions), lasts)
	}
	s.says("GetCallerIdentity", `<GetCallerIdentityResponse><GetCallerIdentityResult><Account>999900001111</Account></GetCallerIdentityResult>`+
		`</GetCallerIdentityResponse>`)
	s.says("DescribeVpcs", `<DescribeVpcsResponse><vpcSet><item><vpcId>vpc-1</vpcId>`+tagSet+`</item></vpcSet></DescribeVpcsResponse>`)
	own := s.account(t, "eu-central-1")
	if err := own.Identify(t.Context()); err != nil || own.Key() != "999900001111" {
		t.Errorf("%q, %v", own.Key(), err)
	}
	other, err := own.Assume(t.Context(), Role{ARN: stagingRole, ExternalID: "ext", SessionName: "fleet-staging"})
	if err != nil {
		t.Fatal(err)
	}
	found := other.Find(t.Context(), "id", nil)
	if other.Key() != "111122223333" || found.Account != "111122223333" || len(found.Resources) != 1 || len(found.Problems) > 0 {
		t.Errorf("%s: %+v", other.Key(), found)
	}
	if len(sessions) != 1 || sessions[0].Get("RoleArn") != stagingRole || sessions[0].Get("ExternalId") != "ext" ||
		sessions[0].Get("RoleSessionName") != "fleet-staging" {
		t.Errorf("%v", sessions)
	}
	keys, err := other.credentials.Retrieve(t.Context())
	if err != nil || keys.AccessKeyID != "ASIA1" || keys.SessionToken != "token" {
		t.Errorf("%+v, %v", keys, err)
	}
	lasts = time.Minute // less than what a request may need
	if other, err = own.Assume(t.Context(), Role{ARN: stagingRole}); err != nil {
		t.Fatal(err)
	}
	if keys, err = other.credentials.Retrieve(t.Context()); err != nil || keys.AccessKeyID != "ASIA3" || sessions[2].Has("ExternalId") {
		t.Errorf("%+v, %v, %v", keys, err, sessions)
	}
}

// The error of a role that lets nobody in has AWS's words and no credential.
func TestAssumeRefused(t *testing.T) {
	s := newSimulator(t)
	s.answers["AssumeRole"] = func(url.Values) (int, string) {
		return http.StatusForbidden, "<ErrorResponse><Error><Code>AccessDenied</Code><Message>you may not</Message></Error></ErrorResponse>"
	}
	own := s.account(t, "eu-central-1")
	_, err := own.Assume(t.Context(), Role{ARN: stagingRole})
	if err == nil || !strings.Contains(err.Error(), "assume the role "+stagingRole+": AccessDenied: you may not") ||
		strings.Contains(err.Error(), "canary") {
		t.Errorf("%v", err)
	}
	s.says("AssumeRole", "<AssumeRoleResponse><AssumeRoleResult></AssumeRoleResult></AssumeRoleResponse>")
	if _, err = own.Assume(t.Context(), Role{ARN: stagingRole}); err == nil {
		t.Error("an answer without credentials is a session")
	}
	if _, err = own.Assume(t.Context(), Role{ARN: "arn:aws:iam::1:user/x"}); err == nil {
		t.Error("a user is a role")
	}
	s.Close()
	if err := own.Identify(t.Context()); err == nil || strings.Contains(err.Error(), "canary") {
		t.Errorf("%v", err)
	}
}

// After a wrong signature AWS repeats what was signed, and a token is a part of that.
func TestWrongKey(t *testing.T) {
	s := newSimulator(t)
	s.answers["GetCallerIdentity"] = func(url.Values) (int, string) {
		return http.StatusForbidden, "<ErrorResponse><Error><Code>SignatureDoesNotMatch</Code><Message>The signature does not match.\n\n" +
			"The Canonical String for this request should have been\n'POST\n/\n\nx-amz-security-token:canary'</Message></Error></ErrorResponse>"
	}
	a := WithKey(Key{"AKIA1", secretKey, "canary"}, "eu-central-1", s.URL, nil)
	err := a.Identify(t.Context())
	if err == nil || !strings.HasSuffix(err.Error(), "SignatureDoesNotMatch: The signature does not match.") {
		t.Errorf("%v", err)
	}
	if a.Key() != "AKIA1" || a.Region() != "eu-central-1" {
		t.Errorf("%s, %s", a.Key(), a.Region())
	}
}
