package aws

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// services maps the fields and variables of clients to the names of services in policies.
var services = map[string]string{
	"ec2": "ec2", "elb": "elasticloadbalancing", "elbv2": "elasticloadbalancing", "eks": "eks", "tags": "tag", "secrets": "secretsmanager",
}

// The page about orphans names exactly the actions that the policy of the provider's controllers does not allow.
func TestPrivileges(t *testing.T) {
	policy, err := os.ReadFile("testdata/controllers-policy.txt")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../../docs/tasks/orphans.md")
	if err != nil {
		t.Fatal(err)
	}
	var missing, named []string
	for _, action := range called(t) {
		if !slices.Contains(strings.Split(string(policy), "\n"), action) {
			missing = append(missing, action)
		}
	}
	for _, name := range regexp.MustCompile("`([a-z0-9]+:[A-Z][A-Za-z]+)`").FindAllStringSubmatch(string(page), -1) {
		if !slices.Contains(named, name[1]) {
			named = append(named, name[1])
		}
	}
	slices.Sort(named)
	if !slices.Equal(missing, named) {
		t.Errorf("the policy lacks %v, and the page names %v", missing, named)
	}
}

// called returns the sorted actions that the package calls.
func called(t *testing.T) (actions []string) {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	call := regexp.MustCompile(`\b(ec2|elb|elbv2|eks|tags|secrets)\.([A-Z]\w+)\(ctx`)
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, each := range call.FindAllSubmatch(content, -1) {
			actions = append(actions, services[string(each[1])]+":"+string(each[2]))
		}
	}
	if len(actions) < 30 {
		t.Fatalf("only %v are called", actions)
	}
	slices.Sort(actions)
	return slices.Compact(actions)
}
