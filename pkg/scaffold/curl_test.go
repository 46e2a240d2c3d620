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

// TestMain lets this program be curl for a pipeline that it runs, on machines that have none. The integration test runs it with the
// machine's.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) != "curl" {
		os.Exit(m.Run())
	}
	if err := curl(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "curl:", err)
		os.Exit(22)
	}
}

// withCurl is a PATH on which this program is curl.
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

// curl knows the options that the pipeline has: -sSf, -o FILE, -H @FILE, -X METHOD, --data-urlencode NAME@FILE.
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
			stdout = io.Discard // it is /dev/null
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
