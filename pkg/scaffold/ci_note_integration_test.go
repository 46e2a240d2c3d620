//go:build integration

package scaffold_test

import (
	"os"
	"testing"
)

// TestNoteOnGitLabByCurl is TestNoteOnGitLab with the curl of this machine.
func TestNoteOnGitLabByCurl(t *testing.T) { writesOneNote(t, "PATH="+os.Getenv("PATH")) }
