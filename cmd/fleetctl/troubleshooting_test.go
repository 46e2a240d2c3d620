package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Somebody who looks a message up has copied it: those of the troubleshooting page are the code's own, word for word.
func TestTroubleshootingQuotesMessages(t *testing.T) {
	page, err := os.ReadFile("../../docs/troubleshooting.md")
	if err != nil {
		t.Fatal(err)
	}
	code := sources(t, "../../pkg")
	rows := regexp.MustCompile("(?m)^\\| ((?:`[^`]+`(?:, )?)+) \\|").FindAllStringSubmatch(string(page), -1)
	if len(rows) < 20 {
		t.Fatalf("found %d rows", len(rows))
	}
	for _, row := range rows {
		for _, message := range regexp.MustCompile("`[^`]+`").FindAllString(row[1], -1) {
			for part := range strings.SplitSeq(strings.Trim(message, "`"), "…") {
				part = strings.Trim(part, " :,.")
				if part == "" || part == "no such file or directory" { // the operating system's
					continue
				}
				if !strings.Contains(code, part) {
					t.Errorf("%s: no message has %q", message, part)
				}
			}
		}
	}
}

// sources are all Go files below dir, tests left out.
func sources(t *testing.T, dir string) string {
	t.Helper()
	var all strings.Builder
	err := filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return err
		}
		content, err := os.ReadFile(name)
		all.Write(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all.String()
}
