package runner

import (
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// flagInfo describes a flag as the program's --help does.
type flagInfo struct {
	Name    string `json:"name"`
	Type    string `json:"type,omitempty"` // "" for a switch
	Default string `json:"default,omitempty"`
	Dashes  string `json:"dashes"` // "--" or "-"
}

// takesNext tells whether the next argument is the flag's value. It is not if the value is optional, which pflag shows as string[="all"].
func (f flagInfo) takesNext() bool { return f.Type != "" && !strings.Contains(f.Type, "[=") }

var (
	// pflag indents a flag by two or six spaces, Go's flag package by two. A deeper line continues the text of the flag above.
	flagLine    = regexp.MustCompile(`^\s{1,8}(?:-\w, )?(--?)([A-Za-z][\w.-]*)(?:[ =](\S+))?(?:\s{2,}|\t|$)`)
	defaultText = regexp.MustCompile(`\(default:? (.*?)\)\.?\s*$`)
)

// parseHelp parses the usage text of Go's flag package or of pflag.
func parseHelp(text string) map[string]flagInfo {
	flags := map[string]flagInfo{}
	current := ""
	for line := range strings.SplitSeq(text, "\n") {
		if m := flagLine.FindStringSubmatch(line); m != nil {
			current = m[2]
			flags[current] = flagInfo{Name: m[2], Type: m[3], Dashes: "--"}
			if m[1] == "-" { // Go's flag package, which also accepts two dashes
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

// arg is one argument: a flag with its value, or another text.
type arg struct {
	text     string // as it was, if it is not a flag
	name     string
	dashes   string
	value    string
	hasValue bool
}

// endOfFlags is the argument after which no flags follow.
const endOfFlags = "--"

// parseArgs parses arguments as the program does. A flag that needs a value and has no "=" takes the next argument.
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

// argSet is a command line whose flags can be changed one by one.
type argSet struct {
	args  []arg
	known map[string]flagInfo
}

// get returns a flag's effective value: the last one on the command line, or else the default.
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

// set sets a flag's value at each place on the command line that has the flag. Without one it adds the flag after the other flags.
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

// leaderElection are the switches that make a manager wait for a lease. The runner turns them off, because it runs one process of each.
var leaderElection = []string{"leader-elect", "enable-leader-election"}

// portFlag matches flags whose value may be a port to listen on. It is one only if the container declares that port.
var portFlag = regexp.MustCompile(`(?i)(^|[-_.])port$`)

// knownPortFlags are flags whose value is always a port to listen on.
var knownPortFlags = map[string]bool{"webhook-port": true, "secure-port": true, "healthz-port": true}

// listener is a flag with an address or port on which the program listens.
type listener struct {
	flag string
	port int32 // in the manifest
	// portOnly means that the value has no address, so the program chooses the address itself.
	portOnly bool
}

// listeners finds the flags that say where the program listens. Their value, on the command line or by default, is an address like ":8080"
// or "0.0.0.0:8080", or a port that the container declares. An address without a host cannot be one to connect to.
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

// listenAddress parses an address to listen on. An address on the local host could also be one to connect to, so the container must declare
// its port.
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
