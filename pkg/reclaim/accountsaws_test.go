package reclaim

import (
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fleetctl/fleetctl/pkg/cloud/aws"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/fromvault"
	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/orphans"
	"github.com/fleetctl/fleetctl/pkg/state"
)

const (
	ownAccount   = "999900001111"
	otherAccount = "111122223333"
	shutAccount  = "444455556666"
)

// simulatedAWS answers for several accounts. The access key of a request tells which account is asked: AKIAX is the own one, and a session
// has the number of its account in its key. Each account has one VPC of the cluster shop, which has the number of the account in its name.
type simulatedAWS struct {
	*httptest.Server
	// ownIsDenied denies the own credentials all but to assume roles.
	ownIsDenied bool
	// management are fields of the management cluster, and variables those of its provider. vault reads them.
	management, variables string
	vault                 *fromvault.Reader
}

var (
	accessKey = regexp.MustCompile(`Credential=([A-Z]+)([0-9]*)/`)
	arnNumber = regexp.MustCompile(`arn:aws:iam::([0-9]+):`)
)

func newSimulatedAWS(t *testing.T) *simulatedAWS {
	t.Helper()
	s := &simulatedAWS{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		form, _ := url.ParseQuery(string(body))
		key := accessKey.FindStringSubmatch(r.Header.Get("Authorization"))
		if key == nil {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		number := key[2]
		if number == "" {
			number = ownAccount
		}
		action := form.Get("Action")
		deny := func() {
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprint(w, "<Response><Errors><Error><Code>UnauthorizedOperation</Code><Message>no</Message></Error></Errors></Response>")
		}
		switch {
		case strings.HasPrefix(key[1], "AKIAWRONG"):
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprintf(w, "<ErrorResponse><Error><Code>SignatureDoesNotMatch</Code><Message>The request signature does not match.\n\n"+
				"The Canonical String for this request should have been 'x-amz-security-token:%s'</Message></Error></ErrorResponse>",
				r.Header.Get("X-Amz-Security-Token"))
		case action == "GetCallerIdentity":
			fmt.Fprintf(w, "<R><GetCallerIdentityResult><Account>%s</Account></GetCallerIdentityResult></R>", number)
		case action == "AssumeRole":
			of := arnNumber.FindStringSubmatch(form.Get("RoleArn"))[1]
			// The role called inner admits sessions of the other account alone.
			if of == shutAccount || strings.HasSuffix(form.Get("RoleArn"), "/inner") && number != otherAccount {
				w.WriteHeader(http.StatusForbidden)
				fmt.Fprint(w, "<ErrorResponse><Error><Code>AccessDenied</Code><Message>you may not</Message></Error></ErrorResponse>")
				return
			}
			fmt.Fprintf(w, "<R><AssumeRoleResult><Credentials><AccessKeyId>ASIA%s</AccessKeyId><SecretAccessKey>s</SecretAccessKey>"+
				"<SessionToken>t</SessionToken><Expiration>%s</Expiration></Credentials></AssumeRoleResult></R>",
				of, time.Now().Add(time.Hour).UTC().Format(time.RFC3339))
		case s.ownIsDenied && key[2] == "":
			deny()
		case r.Header.Get("X-Amz-Target") != "":
			fmt.Fprint(w, "{}")
		case action == "DescribeVpcs":
			fmt.Fprintf(w, "<R><vpcSet><item><vpcId>vpc-%s</vpcId><tagSet><item><key>sigs.k8s.io/cluster-api-provider-aws/cluster/shop</key>"+
				"<value>owned</value></item></tagSet></item></vpcSet></R>", number)
		default:
			fmt.Fprintf(w, "<%[1]sResponse><%[1]sResult></%[1]sResult></%[1]sResponse>", action)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// look lists the orphans of a fleet with these identities. Its management cluster is gone.
func (s *simulatedAWS) look(t *testing.T, identities string, environment map[string]string) *orphans.Report {
	t.Helper()
	return s.lookAt(t, nil, identities, environment)
}

// lookAt is look with the management cluster that is given, or with none.
func (s *simulatedAWS) lookAt(t *testing.T, given *state.Given, identities string, environment map[string]string) *orphans.Report {
	t.Helper()
	dir := t.TempDir()
	for name, content := range map[string]string{
		"fleet.yaml": `apiVersion: fleetctl.dev/v1alpha1
kind: Fleet
metadata: {name: acme}
spec:
  environments: [{name: prod}]
  managementClusters:
  - {name: mgmt, cloud: aws, generation: v1, kubernetesVersion: v1.36.3, host: {type: embedded}, ` + s.management +
			"providers: [{name: aws, " + s.variables + `}]}
`, fleetrepo.IdentityFile: string(fleetrepo.IdentityContent(fleetID)),
		"providers/aws/v1/mgmt/identities.yaml": identities,
		"providers/aws/v1/clusters/prod/lost/cluster.yaml": "kind: HelmRelease\nspec: {chartRef: {name: prod-aws-eks}, values: {identity: " +
			"{name: prod}}}\n",
	} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	repo, err := fleetrepo.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	lookup := func(name string) (string, bool) {
		value, ok := environment[name]
		if name == aws.EndpointVariable {
			return s.URL, true
		}
		return value, ok
	}
	o := Options{Repo: repo, Dir: dir, Regions: []string{"eu-central-1"}, Vault: s.vault, Timeout: time.Minute}
	if given != nil {
		target, err := management.Find(state.Store{Dir: t.TempDir(), Given: given}, given.Name, dir)
		if err != nil {
			t.Fatal(err)
		}
		o.Targets = append(o.Targets, target)
	}
	report, err := Look(t.Context(), management.Deps{LookupEnv: lookup}, o)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func withKey() map[string]string {
	profile := "[default]\naws_access_key_id = AKIAX\naws_secret_access_key = canary\n"
	return map[string]string{aws.CredentialsVariable: base64.StdEncoding.EncodeToString([]byte(profile))}
}

func roleIdentity(name, account, role, source string) string {
	return fmt.Sprintf("---\nkind: AWSClusterRoleIdentity\nmetadata: {name: %s}\n"+
		"spec: {roleARN: \"arn:aws:iam::%s:role/%s\", sourceIdentityRef: %s}\n",
		name, account, role, source)
}

const controllers = "{kind: AWSClusterControllerIdentity, name: default}"

// listed are the resources of the report, and the accounts that were asked.
func listed(r *orphans.Report) (resources, accounts []string) {
	for _, c := range r.Clusters {
		for _, one := range c.Resources {
			resources = append(resources, one.ID)
		}
	}
	for _, c := range r.Clouds {
		accounts = append(accounts, c.Account)
	}
	return resources, accounts
}

// The accounts of roles are asked with the credentials of the provider, each account once.
func TestOrphansInAccountsOfRoles(t *testing.T) {
	s := newSimulatedAWS(t)
	r := s.look(t, roleIdentity("prod", otherAccount, "fleet", controllers)+roleIdentity("again", otherAccount, "other", controllers)+
		roleIdentity("home", ownAccount, "fleet", controllers), withKey())
	resources, accounts := listed(r)
	slices.Sort(resources)
	if want := []string{"vpc-" + otherAccount, "vpc-" + ownAccount}; !r.Complete || !slices.Equal(resources, want) {
		t.Errorf("complete %v, %v, want %v", r.Complete, resources, want)
	}
	if got := strings.Join(accounts, " "); got != ownAccount+" "+otherAccount || len(r.AccountsNotAsked) > 0 {
		t.Errorf("asked %s, not asked %v", got, r.AccountsNotAsked)
	}
}

// A role may be assumed by way of another one only.
func TestOrphansBehindAnotherRole(t *testing.T) {
	const innerAccount = "777788889999"
	r := newSimulatedAWS(t).look(t, roleIdentity("prod", otherAccount, "fleet", controllers)+
		roleIdentity("inner", innerAccount, "inner", "{kind: AWSClusterRoleIdentity, name: prod}"), withKey())
	if resources, _ := listed(r); !r.Complete || len(resources) != 3 || !strings.Contains(strings.Join(resources, " "), "vpc-"+innerAccount) {
		t.Errorf("%v: %+v", resources, r)
	}
}

// Credentials that may only assume roles do not keep the account from being asked as a role in it.
func TestOrphansOfCredentialsThatOnlyAssumeRoles(t *testing.T) {
	s := newSimulatedAWS(t)
	s.ownIsDenied = true
	r := s.look(t, roleIdentity("prod", ownAccount, "fleet", controllers), withKey())
	if resources, accounts := listed(r); !r.Complete || strings.Join(resources, " ") != "vpc-"+ownAccount || len(accounts) != 1 {
		t.Errorf("%v, %v: %+v", resources, accounts, r)
	}
}

// What the credentials do not open is named, and the list is not complete.
func TestOrphansInAccountsThatCannotBeAsked(t *testing.T) {
	for name, one := range map[string]struct {
		identities, account, identity, why, hint string
		environment                              map[string]string
	}{
		"a role that does not admit the credentials": {
			identities: roleIdentity("prod", shutAccount, "fleet", controllers), account: shutAccount, identity: "AWSClusterRoleIdentity prod",
			why: "AccessDenied: you may not", hint: "trust policy", environment: withKey(),
		},
		"a role behind a key": {
			identities: roleIdentity("prod", otherAccount, "fleet", "{kind: AWSClusterStaticIdentity, name: keys}"), account: otherAccount,
			identity: "AWSClusterRoleIdentity prod", why: "does not declare its source, AWSClusterStaticIdentity keys", hint: "by hand",
			environment: withKey(),
		},
		"a role that begins with itself": {
			identities: roleIdentity("prod", otherAccount, "fleet", "{kind: AWSClusterRoleIdentity, name: prod}"), account: otherAccount,
			identity: "AWSClusterRoleIdentity prod", why: "begins with itself", hint: "sourceIdentityRef", environment: withKey(),
		},
		"no credentials": {
			identities: roleIdentity("prod", otherAccount, "fleet", controllers), account: otherAccount, identity: "AWSClusterRoleIdentity prod",
			why: "without the credentials of management cluster mgmt",
		},
		"a role that Flux fills in": {
			identities: roleIdentity("prod", "${ACCOUNT}", "fleet", controllers), identity: "AWSClusterRoleIdentity prod", why: "Flux fills it in",
			hint: "by hand", environment: withKey(),
		},
		"an identity that is not declared": {
			identity: "AWSClusterRoleIdentity prod", why: "clusters/prod/lost/cluster.yaml uses the identity", hint: "fleetctl identity add",
			environment: withKey(),
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newSimulatedAWS(t).look(t, one.identities, one.environment)
			if r.Complete || len(r.AccountsNotAsked) != 1 {
				t.Fatalf("%+v", r)
			}
			got := r.AccountsNotAsked[0]
			if got.Account != one.account || got.Identity != one.identity ||
				!strings.Contains(got.Why, one.why) || !strings.Contains(got.Hint, one.hint) {
				t.Errorf("%+v", got)
			}
			if line := got.String(); !strings.Contains(line, one.account) || !strings.Contains(line, one.identity) ||
				strings.Contains(line, "canary") {
				t.Errorf("%s", line)
			}
		})
	}
	static := "kind: AWSClusterStaticIdentity\nmetadata: {name: keys}\nspec: {secretRef: keys}\n"
	r := newSimulatedAWS(t).look(t, static+roleIdentity("prod", otherAccount, "fleet", controllers), withKey())
	if r.Complete || len(r.AccountsNotAsked) != 1 || r.AccountsNotAsked[0].Identity != "AWSClusterStaticIdentity keys" ||
		!strings.Contains(r.AccountsNotAsked[0].Why, "which could not be read: the management cluster is gone") {
		t.Fatalf("%+v", r)
	}
	// It keeps nothing in the other accounts from being deleted.
	if _, err := r.Deletion("shop", nil); err != nil {
		t.Error(err)
	}
}
