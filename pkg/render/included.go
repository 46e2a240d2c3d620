package render

import (
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
)

// included remembers the results of templates that get only a text. Such a template cannot see its release, so its result is the same for
// all releases. An example is the hash in a machine template's name. A nil included remembers nothing. Several goroutines may use an
// included.
type included struct {
	texts sync.Map // from inclusion to string
	size  atomic.Int64
}

type inclusion struct{ name, text string }

func (i *included) get(name, text string) (string, bool) {
	if i == nil {
		return "", false
	}
	made, ok := i.texts.Load(inclusion{name, text})
	out, _ := made.(string)
	return out, ok
}

func (i *included) put(name, text, made string) {
	if i != nil && i.size.Add(int64(len(text)+len(made))) <= maxRemembered {
		i.texts.Store(inclusion{name, strings.Clone(text)}, made)
	}
}

// differsEachTime matches templates with functions whose result differs each time.
var differsEachTime = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\b(rand[A-Z]\w*|gen[A-Z]\w*|now|ago|uuidv4|shuffle|bcrypt|htpasswd|encryptAES)\b`)
})
