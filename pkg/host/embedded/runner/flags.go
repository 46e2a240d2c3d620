package runner

import (
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// flagInfo is what a program's --help says of one of its flags.
type flagInfo struct {
	Name    string `json:"name"`
	Type    string `json:"type,omitempty"` // "" is a switch
	Default string `json:"default,omitempty"`
	Dashes  string `json:"dashes"` // "--" or "-"
}

// takesNext tells whether the flag takes the next argument for its value. One whose value may be left out, string[="all"] in pflag's
// words, does not.
func (f flagInfo) takesNext() bool { return f.Type != "" && !strings.Contains(f.Type, "[=") }

var (
	// pflag indents by two or six, Go's flag package by two; what is deeper is the text of a flag before.
	flagLine    = regexp.MustCompile(`^\s{1,8}(?:-\w, )?(--?)([A-Za-z][\w.-]*)(?:[ =](\S+))?(?:\s{2,}|\t|$)`)
	defaultText = regexp.MustCompile(`\(default:? (.*?)\)\.?\s*$`)
)

// parseHelp reads the usage text that Go's flag packages print.
func parseHelp(text string) map[string]flagInfo {
	flags := map[string]flagInfo{}
	current := ""
	for line := range strings.SplitSeq(text, "\n") {
		if m := flagLine.FindStringSubmatch(line); m != nil {
			current = m[2]
			flags[current] = flagInfo{Name: m[2], Type: m[3], Dashes: "--"}
			if m[1] == "-" { // the flag package; it takes two dashes, too
				flags[current] = flagInfo{Name: m[2], Type: m[3], Dashes: "-"}
			}
		}
		if m := defaultText.FindStringSubmatch(line); m != nil && current != "" {
			f := flags[current]
			f.Default = strings.Trim(m[1], `"`)
			flags[current] = f
		}
	}
	return flags
}

// arg is one argument: a flag with its value, or something else in text.
type arg struct {
	text     string // as it was, if it is not a flag
	name     string
	dashes   string
	value    string
	hasValue bool
}

// endOfFlags is the argument behind which there are no more flags.
const endOfFlags = "--"

// parseArgs splits arguments as the program will. A flag that takes a value and has no "=" takes the next argument.
func parseArgs(args []string, known map[string]flagInfo) []arg {
	var parsed []arg
	for i := 0; i < len(args); i++ {
		a := args[i]
		if a == endOfFlags {
			for _, rest := range args[i:] {
				parsed = append(parsed, arg{text: rest})
			}
			break
		}
		trimmed := strings.TrimLeft(a, "-")
		dashes := a[:len(a)-len(trimmed)]
		name, value, has := strings.Cut(trimmed, "=")
		if dashes == "" || len(dashes) > 2 || name == "" {
			parsed = append(parsed, arg{text: a})
			continue
		}
		if info, ok := known[name]; ok && !has && info.takesNext() && i+1 < len(args) {
			i++
			value, has = args[i], true
		}
		parsed = append(parsed, arg{name: name, dashes: dashes, value: value, hasValue: has})
	}
	return parsed
}

func (a arg) String() string {
	switch {
	case a.name == "":
		return a.text
	case a.hasValue:
		return a.dashes + a.name + "=" + a.value
	}
	return a.dashes + a.name
}

// argSet is a command line that can be changed flag by flag.
type argSet struct {
	args  []arg
	known map[string]flagInfo
}

// get returns the value that counts: the last one given, else the default.
func (s *argSet) get(name string) (value string, given bool) {
	for _, a := range s.args {
		if a.name == name {
			value, given = a.value, true
		}
	}
	if !given {
		value = s.known[name].Default
	}
	return value, given
}

// set gives a flag a value, wherever it is given, or adds it at the end of the flags.
func (s *argSet) set(name, value string) {
	found := false
	for i := range s.args {
		if s.args[i].name == name {
			s.args[i].value, s.args[i].hasValue, found = value, true, true
		}
	}
	if found {
		return
	}
	dashes := s.known[name].Dashes
	if dashes == "" {
		dashes = "--"
	}
	end := slices.IndexFunc(s.args, func(a arg) bool { return a.name == "" && a.text == endOfFlags })
	if end < 0 {
		end = len(s.args)
	}
	s.args = slices.Insert(s.args, end, arg{name: name, dashes: dashes, value: value, hasValue: true})
}

func (s *argSet) strings() []string {
	out := make([]string, 0, len(s.args))
	for _, a := range s.args {
		out = append(out, a.String())
	}
	return out
}

// leaderElection are the switches that make a manager wait for a lease: there is only one of each here.
var leaderElection = []string{"leader-elect", "enable-leader-election"}

// portFlag matches the flags whose value is a port to listen on, if the container declares that port.
var portFlag = regexp.MustCompile(`(?i)(^|[-_.])port$`)

// knownPortFlags are those that need no declaration.
var knownPortFlags = map[string]bool{"webhook-port": true, "secure-port": true, "healthz-port": true}

// listener is a flag that says where the program listens.
type listener struct {
	flag string
	port int32 // as the manifest has it
	// portOnly says that the value has no address: the program listens wherever it likes.
	portOnly bool
}

// listeners finds where the program will listen: flags with a value like ":8080" or "0.0.0.0:8080", given or by default,
// and port numbers that the container declares. No address without a host can be one to connect to.
func (s *argSet) listeners(declared map[int32]bool) []listener {
	var found []listener
	seen := map[string]bool{}
	consider := func(name string) {
		if seen[name] || name == "" {
			return
		}
		seen[name] = true
		value, _ := s.get(name)
		if port, ok := listenAddress(value, declared); ok {
			found = append(found, listener{flag: name, port: port})
		} else if port, ok := portNumber(value); ok && (knownPortFlags[name] || portFlag.MatchString(name) && declared[port]) {
			found = append(found, listener{flag: name, port: port, portOnly: true})
		}
	}
	for _, a := range s.args {
		consider(a.name)
	}
	for _, name := range sortedKeys(s.known) {
		consider(name)
	}
	return found
}

// listenAddress reads an address that only a listener can have; one on the local host must be declared.
func listenAddress(value string, declared map[int32]bool) (int32, bool) {
	host, text, err := net.SplitHostPort(value)
	if err != nil {
		return 0, false
	}
	port, ok := portNumber(text)
	switch host {
	case "", "0.0.0.0", "::", "*":
		return port, ok
	case "localhost", "127.0.0.1", "::1":
		return port, ok && declared[port]
	}
	return 0, false
}

func portNumber(text string) (int32, bool) {
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil || n <= 0 || n > 65535 {
		return 0, false
	}
	return int32(n), true
}
