package ui

import (
	"bufio"
	"fmt"
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
