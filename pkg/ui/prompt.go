package ui

import (
	"bufio"
	"fmt"
	"strconv"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

// ConfirmTyped asks the user to type word. It returns nil when they did. Without a terminal it fails at once and names flag, the
// flag that answers for a script.
func ConfirmTyped(s Streams, question, word, flag string) error {
	if !s.InTerminal {
		return diag.Usage("add "+flag+" to go ahead without a question", "this needs a confirmation and standard input is not a terminal")
	}
	fmt.Fprintf(s.Err, "%s\nType %s to go ahead: ", question, paint(s.ErrColor, bold, word))
	line, err := bufio.NewReader(s.In).ReadString('\n')
	if err != nil {
		return fmt.Errorf("read the confirmation: %w", err)
	}
	if strings.TrimSpace(line) != word {
		return diag.Usage("nothing was changed", "the answer was not %q", word)
	}
	return nil
}

// Confirm asks a yes-or-no question; anything but y or yes is no. Without a terminal the answer is no.
func Confirm(s Streams, question string) bool {
	if !s.InTerminal {
		return false
	}
	fmt.Fprintf(s.Err, "%s [y/N] ", question)
	line, err := bufio.NewReader(s.In).ReadString('\n')
	if err != nil {
		return false
	}
	answer := strings.ToLower(strings.TrimSpace(line))
	return answer == "y" || answer == "yes"
}

// Choose returns the only choice there is, or the one that the user types, by its number or name. Without a terminal it fails and names
// flag, the flag that answers for a script.
func Choose(s Streams, question string, choices []string, flag string) (string, error) {
	if len(choices) == 1 {
		return choices[0], nil
	}
	list := strings.Join(choices, ", ")
	if !s.InTerminal {
		return "", diag.Usage("there are: "+list, "%s is missing", flag)
	}
	fmt.Fprintf(s.Err, "%s:\n", question)
	for i, choice := range choices {
		fmt.Fprintf(s.Err, "  %d  %s\n", i+1, choice)
	}
	fmt.Fprint(s.Err, "Number or name: ")
	line, err := bufio.NewReader(s.In).ReadString('\n')
	if err != nil {
		return "", fmt.Errorf("read the answer: %w", err)
	}
	answer := strings.TrimSpace(line)
	for i, choice := range choices {
		if answer == choice || answer == strconv.Itoa(i+1) {
			return choice, nil
		}
	}
	return "", diag.Usage("there are: "+list, "%q is none of the choices", answer)
}
