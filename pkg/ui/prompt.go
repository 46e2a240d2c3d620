package ui

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/plain"
)

// ConfirmTyped asks the user to type word. It returns nil when they did. Without a terminal it fails at once and names flag, the
// flag that answers for a script.
func ConfirmTyped(s Streams, question, word, flag string) error {
	if !s.InTerminal {
		return diag.Usage("add "+flag+" to go ahead without a question", "this needs a confirmation and standard input is not a terminal")
	}
	fmt.Fprintf(s.Err, "%s\nType %s to go ahead: ", question, paint(s.ErrColor, plain.Bold, word))
	line, err := readLine(s.In)
	if errors.Is(err, io.EOF) { // a name without the end of its line is none
		fmt.Fprintln(s.Err) // what follows starts on a line of its own
		return diag.Usage("nothing was changed", "the input ended before the answer %q", word)
	}
	if err != nil {
		return fmt.Errorf("read the confirmation: %w", err)
	}
	if strings.TrimSpace(line) != word {
		return diag.Usage("nothing was changed", "the answer was not %q", word)
	}
	return nil
}

// readLine reads a line and not a byte more: another question may follow.
func readLine(in io.Reader) (string, error) {
	var line []byte
	for one := make([]byte, 1); ; {
		n, err := in.Read(one)
		line = append(line, one[:n]...)
		if err != nil || n > 0 && one[0] == '\n' {
			return string(line), err
		}
	}
}

// Ask returns the text that the user types, without surrounding spaces. It fails without a terminal, or if the user types nothing. missing
// is the text of that error, and hint its hint.
func Ask(s Streams, question, missing, hint string) (string, error) {
	if !s.InTerminal {
		return "", diag.Usage(hint, "%s", missing)
	}
	_, _ = Fprintf(s.Err, "%s: ", question)
	line, err := readLine(s.In)
	answer := strings.TrimSpace(line)
	if errors.Is(err, io.EOF) && answer == "" {
		fmt.Fprintln(s.Err) // what follows starts on a line of its own
	} else if err != nil && !errors.Is(err, io.EOF) {
		return "", fmt.Errorf("read the answer: %w", err)
	}
	if answer == "" {
		return "", diag.Usage(hint, "%s", missing)
	}
	return answer, nil
}

// maxChoices are shown; of more, a person knows the name.
const maxChoices = 30

// Question has a choice of answers.
type Question struct {
	Text    string
	Choices []string
	// Open takes other answers as well.
	Open bool
	// Missing says what is missing without an answer, Hint how to give it.
	Missing, Hint string
}

// Ask returns the choice that the user types, by number or name. It fails without a terminal, or if the answer is not among the choices;
// the error lists the choices.
func (q Question) Ask(s Streams) (string, error) {
	list := q.list()
	if s.InTerminal && len(q.Choices) <= maxChoices {
		_, _ = Fprintf(s.Err, "%s:\n", q.Text)
		for i, choice := range q.Choices {
			_, _ = Fprintf(s.Err, "  %d  %s\n", i+1, choice)
		}
	}
	text := "Number or name"
	if len(q.Choices) > maxChoices {
		text = q.Text
	}
	hint := list
	if q.Hint != "" {
		hint = q.Hint + "; " + list
	}
	answer, err := Ask(s, text, q.Missing, hint)
	if err != nil {
		return "", err
	}
	for i, choice := range q.Choices {
		if answer == choice || answer == strconv.Itoa(i+1) {
			return choice, nil
		}
	}
	if q.Open {
		return answer, nil
	}
	if nearest := diag.Nearest(answer, q.Choices); nearest != "" {
		list = "did you mean " + nearest + "?"
	}
	return "", diag.Usage(list, "%q is none of the choices", answer)
}

// list names the choices.
func (q Question) list() string {
	if len(q.Choices) > maxChoices {
		return fmt.Sprintf("there are %d", len(q.Choices))
	}
	return "there are: " + strings.Join(q.Choices, ", ")
}

// Choose returns the only choice, or the choice that the user types. Without a terminal it fails, and names flag, the flag that answers for
// a script.
func Choose(s Streams, question string, choices []string, flag string) (string, error) {
	if len(choices) == 1 {
		return choices[0], nil
	}
	return Question{Text: question, Choices: choices, Missing: flag + " is missing"}.Ask(s)
}
