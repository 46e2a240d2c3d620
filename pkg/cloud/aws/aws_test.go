package aws

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/cloud"
)

const secretKey = "canary/of+a+secret"

func encode(profile string) string { return base64.StdEncoding.EncodeToString([]byte(profile)) }

var goodProfile = encode("# made by hand\n[default]\naws_access_key_id = AKIAX\naws_secret_access_key=" + secretKey +
	"\nregion = eu-central-1\n\n[other]\naws_access_key_id = OTHER\n")

func TestNew(t *testing.T) {
	a, err := New(goodProfile, "", nil)
	if err != nil || a.Key() != "AKIAX" || a.region != "eu-central-1" {
		t.Errorf("%+v, %v", a, err)
	}
	if keys, err := a.credentials.Retrieve(t.Context()); err != nil || keys.SecretAccessKey != secretKey {
		t.Errorf("%+v, %v", keys, err)
	}
	for name, value := range map[string]string{
		"no base64": secretKey + "!", "no keys": encode("[default]\nregion = x\n"),
		"no access key": encode("[default]\naws_secret_access_key = " + secretKey),
		"empty":         "",
	} {
		if _, err := New(value, "", nil); err == nil || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// simulator returns the prepared answer for each action, in the formats of AWS. For other actions it returns an empty answer.
type simulator struct {
	*httptest.Server
	mu      sync.Mutex
	answers map[string]func(url.Values) (status int, body string)
	asked   []string
}

func newSimulator(t *testing.T) *simulator {
	t.Helper()
	s := &simulator{answers: map[string]func(url.Values) (int, string){}}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		form, _ := url.ParseQuery(string(body))
		action := form.Get("Action")
		if target := r.Header.Get("X-Amz-Target"); target != "" { // services with JSON
			_, action, _ = strings.Cut(target, ".")
			form = url.Values{"json": {string(body)}}
			w.Header().Set("Content-Type", "application/x-amz-json-1.1")
		}
		s.mu.Lock()
		answer := s.answers[action]
		if !strings.HasPrefix(action, "Describe") && !strings.HasPrefix(action, "Get") {
			s.asked = append(s.asked, action)
		}
		s.mu.Unlock()
		switch {
		case answer != nil:
			status, text := answer(form)
			w.WriteHeader(status)
			fmt.Fprint(w, text)
		case r.Header.Get("X-Amz-Target") != "":
			fmt.Fprint(w, "{}")
		default:
			fmt.Fprintf(w, "<%[1]sResponse><%[1]sResult></%[1]sResult></%[1]sResponse>", action)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *simulator) says(action, body string) {
	s.answers[action] = func(url.Values) (int, string) { return http.StatusOK, body }
}

func (s *simulator) refuses(action, code string) {
	s.answers[action] = func(url.Values) (int, string) {
		return http.StatusForbidden, "<Response><Errors><Error><Code>" + code +
			"</Code><Message>you may not</Message></Error></Errors></Response>"
	}
}

func (s *simulator) account(t *testing.T, regions ...string) *Account {
	t.Helper()
	a, err := New(goodProfile, s.URL, regions)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

const tagSet = `<tagSet><item><key>sigs.k8s.io/cluster-api-provider-aws/cluster/shop</key><value>owned</value></item>` +
	`<item><key>fleetctl.dev/fleet</key><value>id</value></item></tagSet>`

func TestFind(t *testing.T) {
	s := newSimulator(t)
	s.says("DescribeRegions",
		`<DescribeRegionsResponse><regionInfo><item><regionName>eu-central-1</regionName></item></regionInfo></DescribeRegionsResponse>`)
	page := 0
	s.answers["DescribeVpcs"] = func(form url.Values) (int, string) {
		page++
		next := "<nextToken>more</nextToken>"
		if form.Get("NextToken") == "more" {
			next = ""
		}
		return http.StatusOK, fmt.Sprintf(`<DescribeVpcsResponse><vpcSet><item><vpcId>vpc-%d</vpcId>%s</item>
<item><vpcId>shared</vpcId><tagSet><item><key>kubernetes.io/cluster/shop</key><value>shared</value></item></tagSet></item>
<item><vpcId>somebodys</vpcId></item></vpcSet>%s</DescribeVpcsResponse>`, page, tagSet, next)
	}
	instance := func(id, state string) string {
		return `<item><instanceId>` + id + `</instanceId><vpcId>vpc-1</vpcId><launchTime>2026-01-02T03:04:05Z</launchTime><instanceState><name>` +
			state +
			`</name></instanceState>` + tagSet + `</item>`
	}
	s.says("DescribeInstances",
		`<DescribeInstancesResponse><reservationSet><item><instancesSet>`+instance("i-1", "running")+instance("i-old", "terminated")+
			`</instancesSet></item></reservationSet></DescribeInstancesResponse>`)
	s.says("GetResources", `{"ResourceTagMappingList": [
 {"ResourceARN": "arn:aws:secretsmanager:eu-central-1:1:secret:x", "Tags": [{"Key": "kubernetes.io/cluster/shop", "Value": "owned"}]},
 {"ResourceARN": "arn:aws:s3:::bucket", "Tags": [{"Key": "kubernetes.io/cluster/shop", "Value": "owned"}]},
 {"ResourceARN": "arn:aws:ec2:eu-central-1:1:instance/i-old", "Tags": [{"Key": "kubernetes.io/cluster/shop", "Value": "owned"}]}]}`)
	found := s.account(t).Find(t.Context(), "id", nil)
	var got []string
	for _, r := range found.Resources {
		got = append(got, fmt.Sprintf("%s %s %s %s", r.Kind, r.ID, r.Cluster, r.Fleet))
	}
	want := []string{
		"instance i-1 shop id", "vpc vpc-1 shop id", "vpc vpc-2 shop id", "secret arn:aws:secretsmanager:eu-central-1:1:secret:x shop ",
		"s3-bucket arn:aws:s3:::bucket shop ",
	}
	if !slices.Equal(got, want) || len(found.Problems) > 0 || !slices.Equal(found.Regions, []string{"eu-central-1"}) {
		t.Errorf("%q, want %q; %+v", got, want, found)
	}
	if created := found.Resources[0].Created; created == nil || created.Year() != 2026 || found.Resources[0].Cost != cloud.CostHourly {
		t.Errorf("%+v", found.Resources[0])
	}
}

// TestFindTold checks that each denied request is a problem of its own and does not hide other results. Invalid credentials give one
// problem.
func TestFindTold(t *testing.T) {
	s := newSimulator(t)
	s.refuses("DescribeRegions", "UnauthorizedOperation")
	s.refuses("DescribeVolumes", "UnauthorizedOperation")
	s.says("DescribeVpcs", `<DescribeVpcsResponse><vpcSet><item><vpcId>vpc-1</vpcId>`+tagSet+`</item></vpcSet></DescribeVpcsResponse>`)
	found := s.account(t).Find(t.Context(), "id", nil)
	if len(found.Problems) != 2 || len(found.Resources) != 1 || !strings.Contains(found.Problems[0].Hint, "--region") ||
		!strings.Contains(found.Problems[1].Text, "list volumes: UnauthorizedOperation") || found.Problems[1].Region != "eu-central-1" {
		t.Errorf("%+v", found)
	}
	s.refuses("DescribeVpcs", "AuthFailure")
	if found := s.account(t, "eu-central-1").Find(t.Context(), "id", nil); len(found.Problems) != 1 ||
		!strings.Contains(found.Problems[0].Text, "AuthFailure") {
		t.Errorf("%+v", found)
	}
	s.Close()
	if found := s.account(t, "eu-central-1").Find(t.Context(), "id", nil); len(found.Problems) != 1 ||
		strings.Contains(found.Problems[0].Text, "canary") {
		t.Errorf("%+v", found)
	}
}

// A tag that the tagging API does not search for, and that any user of the account can give an instance, does not end the search.
func TestFindWithOddTags(t *testing.T) {
	s := newSimulator(t)
	odd := ""
	for _, name := range []string{strings.Repeat("x", 100), "a;rm -rf /", "a&#10;b", "ok"} {
		odd += "<item><instanceId>i-" + fmt.Sprint(len(odd)) + "</instanceId><tagSet><item><key>kubernetes.io/cluster/" + name +
			"</key><value>owned</value></item></tagSet></item>"
	}
	s.says("DescribeInstances", `<DescribeInstancesResponse><reservationSet><item><instancesSet>`+odd+
		`</instancesSet></item></reservationSet></DescribeInstancesResponse>`)
	var asked []string
	s.answers["GetResources"] = func(form url.Values) (int, string) {
		var in struct{ TagFilters []struct{ Key string } }
		if err := json.Unmarshal([]byte(form.Get("json")), &in); err != nil || len(in.TagFilters) != 1 {
			return http.StatusBadRequest, `{"__type": "InvalidParameterException", "message": "that is no request"}`
		}
		key := in.TagFilters[0].Key
		if !regexp.MustCompile(`^[\p{L}\p{Z}\p{N}_.:/=+\-@]{1,128}$`).MatchString(key) {
			return http.StatusBadRequest, `{"__type": "InvalidParameterException", "message": "the key of the filter is not valid"}`
		}
		asked = append(asked, key)
		return http.StatusOK, `{"ResourceTagMappingList": []}`
	}
	found := s.account(t, "eu-central-1").Find(t.Context(), "id", nil)
	if len(found.Problems) > 0 || len(found.Resources) != 4 || !slices.Contains(asked, "kubernetes.io/cluster/ok") {
		t.Errorf("asked for %q: %+v", asked, found)
	}
}
