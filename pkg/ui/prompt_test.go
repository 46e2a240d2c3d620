package ui

import (
	"bytes"
	"strings"
	"testing"
)

// Each question takes its own line: what was typed ahead is the next one's.
func TestQuestionsInARow(t *testing.T) {
	var asked bytes.Buffer
	s := Streams{In: strings.NewReader("mgmt\n shop \nno\nlast"), Err: &asked, InTerminal: true}
	for _, word := range []string{"mgmt", "shop"} {
		if err := ConfirmTyped(s, "Delete?", word, "--yes"); err != nil {
			t.Errorf("%s: %v", word, err)
		}
	}
	if err := ConfirmTyped(s, "Delete?", "yes", "--yes"); err == nil {
		t.Error("\"no\" was taken for \"yes\"")
	}
	if answer, err := Ask(s, "Name", "a name is missing", ""); err != nil || answer != "last" {
		t.Errorf("got %q, %v", answer, err)
	}
	if _, err := Ask(s, "Name", "a name is missing", ""); err == nil {
		t.Error("the end of the input is an answer")
	}
}
