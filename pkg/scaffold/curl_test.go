package scaffold_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestMain lets the test program act as curl for the pipeline that a test runs, so that the machine needs no curl. The integration test
// runs the pipeline with the machine's curl.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) != "curl" {
		os.Exit(m.Run())
	}
	if err := curl(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "curl:", err)
		os.Exit(22)
	}
}

// withCurl returns a setting of PATH with which curl is this program.
func withCurl(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Symlink(self, filepath.Join(dir, "curl")); err != nil {
		t.Fatal(err)
	}
	return "PATH=" + dir + string(filepath.ListSeparator) + os.Getenv("PATH")
}

// curl supports the options that the pipeline uses: -sSf, -o FILE, -H @FILE, -X METHOD, --data-urlencode NAME@FILE.
func curl(args []string, stdout io.Writer) error {
	method, target := http.MethodGet, ""
	header, form := http.Header{}, url.Values{}
	for len(args) > 0 {
		option := args[0]
		if option == "-sSf" {
			args = args[1:]
			continue
		}
		if !strings.HasPrefix(option, "-") {
			target, args = option, args[1:]
			continue
		}
		if len(args) < 2 {
			return fmt.Errorf("%s has no value", option)
		}
		value := args[1]
		args = args[2:]
		switch option {
		case "-o":
			stdout = io.Discard // the pipeline gives /dev/null
		case "-X":
			method = value
		case "-H", "--data-urlencode":
			name, file, _ := strings.Cut(value, "@")
			content, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			if option == "--data-urlencode" {
				form.Set(name, string(content))
				continue
			}
			key, said, _ := strings.Cut(strings.TrimSpace(string(content)), ": ")
			header.Set(key, said)
		default:
			return fmt.Errorf("unknown option %s", option)
		}
	}
	req, err := http.NewRequest(method, target, bytes.NewBufferString(form.Encode()))
	if err != nil {
		return err
	}
	req.Header = header
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	_, err = io.Copy(stdout, resp.Body)
	if resp.StatusCode >= http.StatusBadRequest {
		err = errors.New(resp.Status)
	}
	return errors.Join(err, resp.Body.Close())
}
