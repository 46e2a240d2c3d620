package gitrepo

import (
	"encoding/base64"
	"encoding/hex"
	"errors"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/guises"
)

// A server, or a program of git's, may repeat the token in another form. The error still matches its cause.
func TestRedactKnowsAllForms(t *testing.T) {
	const token = `glx/+&<>"7f3a9c51e2`
	for name, said := range map[string]string{
		"plain": token, "query": url.QueryEscape(token), "path": url.PathEscape(token), "Go": strconv.Quote(token),
		"user":        "https://" + url.UserPassword("git", token).String() + "@git.example.com/x.git",
		"hexadecimal": hex.EncodeToString([]byte(token)), "basic": base64.StdEncoding.EncodeToString([]byte("git:" + token)),
	} {
		cause := errors.New("fatal: " + said + " was refused")
		err := redact(cause, token, "", "x1")
		if guises.In(err.Error(), 8, token) || !strings.Contains(err.Error(), "was refused") || !errors.Is(err, cause) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := redact(errors.New("pin x1 is wrong"), "x1"); strings.Contains(err.Error(), "x1") {
		t.Errorf("a short one is shown: %v", err)
	}
}
