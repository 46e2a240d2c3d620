package gitrepo_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
)

// longFilter is the variable that makes of this test program a filter of git's that goes on running, as git-lfs is one.
const longFilter = "GITREPO_TEST_LONG_FILTER"

// longRunning is the configuration of such a filter, called long, which keeps text in upper case in commits.
func longRunning(more string) string {
	path, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return fmt.Sprintf("[filter \"long\"]\n\tprocess = %s=1 %s\n\t%s\n", longFilter, path, more)
}

// longFilterProgram does what gitattributes(5) has such a filter do, until git has nothing more for it.
func longFilterProgram() int {
	f := &packets{from: bufio.NewReader(os.Stdin), to: bufio.NewWriter(os.Stdout)}
	if err := f.serve(); err != nil && !errors.Is(err, io.EOF) {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

type packets struct {
	from *bufio.Reader
	to   *bufio.Writer
}

func (p *packets) serve() error {
	if _, err := p.list(); err != nil { // git-filter-client, version=2
		return err
	}
	if err := p.say("git-filter-server\n", "version=2\n"); err != nil {
		return err
	}
	if _, err := p.list(); err != nil { // what git can do
		return err
	}
	if err := p.say("capability=clean\n", "capability=smudge\n"); err != nil {
		return err
	}
	for {
		asked, err := p.list()
		if err != nil {
			return err
		}
		content, err := p.list()
		if err != nil {
			return err
		}
		out := bytes.ToUpper([]byte(strings.Join(content, "")))
		if asked[0] == "command=smudge\n" {
			out = bytes.ToLower(out)
		}
		if err := errors.Join(p.say("status=success\n"), p.say(string(out)), p.say()); err != nil {
			return err
		}
	}
}

// list is what comes up to the next flush.
func (p *packets) list() ([]string, error) {
	var all []string
	for {
		head := make([]byte, 4)
		if _, err := io.ReadFull(p.from, head); err != nil {
			return nil, err
		}
		size, err := strconv.ParseUint(string(head), 16, 16)
		if err != nil || size == 0 {
			return all, err
		}
		body := make([]byte, size-4)
		if _, err := io.ReadFull(p.from, body); err != nil {
			return nil, err
		}
		all = append(all, string(body))
	}
}

// say sends packets, and a flush.
func (p *packets) say(all ...string) error {
	for _, one := range all {
		if one != "" {
			fmt.Fprintf(p.to, "%04x%s", len(one)+4, one)
		}
	}
	fmt.Fprint(p.to, "0000")
	return p.to.Flush()
}
