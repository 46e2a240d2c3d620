//go:build integration

package scaffold_test

import (
	"os"
	"testing"
)

// The same by the curl of this machine.
func TestNoteOnGitLabByCurl(t *testing.T) { writesOneNote(t, "PATH="+os.Getenv("PATH")) }
