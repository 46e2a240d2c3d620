package why

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the page of remedies anew")

// TestRemedies tries each remedy with messages as controllers and clouds put them: it is found, and no other before it.
func TestRemedies(t *testing.T) {
	ids := map[string]bool{}
	for _, r := range Catalogue() {
		if ids[r.ID] || !regexp.MustCompile(`^[a-z][a-z-]+$`).MatchString(r.ID) {
			t.Errorf("the ID %q is no good, or another one's", r.ID)
		}
		ids[r.ID] = true
		if r.Title == "" || r.Means == "" || r.Do == "" || len(r.examples) == 0 {
			t.Errorf("%s: it lacks words", r.ID)
		}
		for _, e := range r.examples {
			found := remedyFor(&Link{Stage: e.stage}, Trouble{Condition: e.condition, Reason: e.text, code: e.code}, nil)
			switch {
			case found == nil:
				t.Errorf("%s: nothing fits %q", r.ID, e.text)
			case found.ID != r.ID:
				t.Errorf("%s: %s fits %q first", r.ID, found.ID, e.text)
			}
		}
	}
	if got := remedyFor(&Link{Stage: StageProvider}, Trouble{Condition: "VpcReady", Reason: "it rains"}, nil); got != nil {
		t.Errorf("%s fits what nobody knows", got.ID)
	}
}

// TestPageOfRemedies: the page has each remedy of the catalogue, in its words, and no other.
func TestPageOfRemedies(t *testing.T) {
	const page = "../../" + Page
	want := pageOfRemedies()
	if *update {
		if err := os.WriteFile(page, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s is not what the catalogue has; write it anew with -update", Page)
	}
}

func pageOfRemedies() []byte {
	var b strings.Builder
	b.WriteString(`# Remedies

<!-- Made of pkg/why's catalogue by ` + "`go test ./pkg/why -run TestPageOfRemedies -update`" + `; a test holds both to each other. -->

This page lists the causes that ` + "`fleetctl why CLUSTER`" +
		` knows, each with its remedy. Below a remedy are messages of controllers and clouds for which ` + "`why`" + `
shows it; a test tries each. For any other cause, ` + "`why`" + ` shows only the message of the controller or the cloud.
`)
	for _, r := range Catalogue() {
		fmt.Fprintf(&b, "\n## %s\n\n**%s.** %s\n\n%s\n\n", r.ID, r.Title, r.Means, r.Do)
		for _, e := range r.examples {
			fmt.Fprintf(&b, "- %s: `%s`\n", e.stage, strings.ReplaceAll(e.text, "`", "'"))
		}
	}
	return []byte(b.String())
}
