package render

import (
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
)

// included remembers the results of templates that get nothing but a text. Such a template cannot see its release, so its result is the
// same for all releases. The hash in a machine template's name is an example. A nil included remembers nothing. It is safe for use by
// several goroutines.
type included struct {
	texts sync.Map // of inclusion, to string
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

// differsEachTime finds templates with functions whose result is another one each time.
var differsEachTime = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\b(rand[A-Z]\w*|gen[A-Z]\w*|now|ago|uuidv4|shuffle|bcrypt|htpasswd|encryptAES)\b`)
})
