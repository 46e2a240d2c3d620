package variables

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/guises"
	"github.com/fleetctl/fleetctl/pkg/within"
)

// maxSaid bounds what is told of a command's standard error. Forms of its output that are shorter than leastForm may be words of it.
const (
	maxSaid   = 4 << 10
	leastForm = 5
)

var errTooMuch = fmt.Errorf("its output is larger than %d bytes", within.MostNamed)

// variableFromCommand runs a command of fleet.yaml's. What it says on standard error is part of the error; its output never is, not even
// where the command repeats it there. A nil environment is that of this process. The command gets neither input nor a terminal. Where its
// time ends, it ends with all programs that it has started.
func variableFromCommand(ctx context.Context, command []string, dir string, environment []string) (string, error) {
	running, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	stdout := &bounded{most: within.MostNamed, full: func() { stop(errTooMuch) }}
	stderr := &bounded{most: maxSaid}
	cmd := exec.CommandContext(running, command[0], command[1:]...) //nolint:gosec // the user's own fleet.yaml names it
	cmd.Dir, cmd.Env = dir, environment
	cmd.Stdout, cmd.Stderr = stdout, stderr
	ownSession(cmd)
	cmd.WaitDelay = time.Second // what it leaves in the background may hold its output open
	err := cmd.Run()
	if errors.Is(err, exec.ErrWaitDelay) { // the command itself has ended well
		err = nil
	}
	hint := "run it by hand in " + dir
	switch cause := context.Cause(running); {
	case cause == nil || err == nil && !errors.Is(cause, errTooMuch):
	case errors.Is(cause, errTooMuch):
		err = errTooMuch
	default:
		err = fmt.Errorf("it gave no value in time: %w", cause)
		hint += ": fleetctl gives it neither input nor a terminal, so it must end by itself and ask nothing"
	}
	if err == nil {
		return withoutNewline(stdout.kept.Bytes()), nil
	}
	if said := without(stderr.text(), stdout.kept.String()); said != "" {
		err = fmt.Errorf("%w: %s", err, said)
	}
	return "", diag.Errorf(hint, "command %s: %w", command[0], err)
}

// bounded keeps the first bytes of what is written to it. It takes all, so that whoever writes is not disturbed.
type bounded struct {
	kept bytes.Buffer // not embedded: io.Copy would write past the bound by its ReadFrom
	most int
	cut  bool   // whether there was more
	full func() // called when there is more; nil where nobody wants to know
}

// Write implements io.Writer.
func (b *bounded) Write(p []byte) (int, error) {
	room := b.most - b.kept.Len()
	if len(p) > room {
		b.cut = true
		if b.full != nil {
			b.full()
		}
	}
	_, _ = b.kept.Write(p[:min(room, len(p))]) // a buffer takes all
	return len(p), nil
}

// text is what was kept. Of text that was cut, it leaves out the last line: half a line is not recognised as a part of a secret.
func (b *bounded) text() string {
	text := b.kept.String()
	if b.cut {
		text = text[:strings.LastIndexByte(text, '\n')+1]
	}
	return text
}

// without is what was said without the lines of a secret output, and without the longer words of these lines: a program that fails says
// only the key, where its output has a profile. If the rest still has one of them in another form, nothing of what was said is told.
func without(said, output string) string {
	secrets := secretsIn(output)
	for _, secret := range secrets {
		said = strings.ReplaceAll(said, secret, "…")
	}
	if guises.In(said, leastForm, secrets...) {
		return "what it says is not shown, because it has a part of its output in another form"
	}
	return strings.TrimSpace(said)
}

// secretsIn are the lines and the longer words of a secret output, and of what it encodes in base64; the longest come first, because a part
// of a longer one must not hide it.
func secretsIn(output string) (secrets []string) {
	const leastLine, leastWord = 5, 8 // shorter ones stand in many a word
	texts := []string{output}
	if decoded, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(output), "")); err == nil {
		texts = append(texts, string(decoded))
	}
	for _, text := range texts {
		for line := range strings.Lines(text) {
			if line = strings.TrimSpace(line); len(line) >= leastLine {
				secrets = append(secrets, line)
			}
			for _, word := range strings.FieldsFunc(line, isBetweenWords) {
				if len(word) >= leastWord {
					secrets = append(secrets, word)
				}
			}
		}
	}
	slices.SortStableFunc(secrets, func(a, b string) int { return len(b) - len(a) })
	return slices.Compact(secrets)
}

func isBetweenWords(r rune) bool {
	return unicode.IsSpace(r) || strings.ContainsRune("\"'`=:,;{}[]()<>", r)
}
