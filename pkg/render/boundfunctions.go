package render

import (
	"fmt"
	"maps"
	"reflect"
	"strings"
	"text/template"
	"unicode/utf8"
)

// check returns an error if a call of a function with these arguments would make or cost too much.
type check func(b *bounds, args []reflect.Value) error

// The costs, in steps, of slow functions. They are estimates, and grow with the length of the key.
const (
	costLargeKey = maxSteps / 5
	costKey      = maxSteps / 20
	costInclude  = 10
	costHash     = maxSteps / 25
)

// checks has the check of each function whose result may be larger than its arguments, by the function's name.
var checks = map[string]check{
	"repeat": func(_ *bounds, a []reflect.Value) error { return product(number(a[0]), length(a[1])) },
	"until":  func(b *bounds, a []reflect.Value) error { return b.items(abs(number(a[0]))) },
	"untilStep": func(b *bounds, a []reflect.Value) error {
		return b.items(turns(number(a[0]), number(a[2]), number(a[1])))
	},
	"seq":             func(b *bounds, a []reflect.Value) error { return b.items(sequence(a)) },
	"indent":          indents,
	"nindent":         indents,
	"randBytes":       func(_ *bounds, a []reflect.Value) error { return product(number(a[0]), 1) },
	"replace":         func(_ *bounds, a []reflect.Value) error { return replacement(a[2], a[1], countOf(a[0], a[2])) },
	"wrapWith":        func(_ *bounds, a []reflect.Value) error { return replacement(a[2], a[1], length(a[2])) },
	"wrap":            func(b *bounds, a []reflect.Value) error { return b.reads(a[1]) },
	"join":            joined,
	"printf":          printed,
	"deepEqual":       walked,
	"toToml":          walked,
	"mustToToml":      walked,
	"buildCustomCert": func(b *bounds, _ []reflect.Value) error { return b.spend(costHash) },
}

// families are checks that several functions share.
var families = []struct {
	names []string
	check check
}{
	{[]string{"randAlphaNum", "randAlpha", "randAscii", "randNumeric"}, func(b *bounds, a []reflect.Value) error {
		if err := product(number(a[0]), 1); err != nil {
			return err
		}
		return b.spend(int(max(0, number(a[0])))) // a character comes from the system's random source, and takes as long as a turn of a loop
	}},
	{[]string{"list", "tuple", "dict", "append", "mustAppend", "push", "mustPush", "prepend", "mustPrepend"}, holds},
	{[]string{"uniq", "mustUniq"}, func(b *bounds, a []reflect.Value) error { // each item is compared with all others
		return b.spend(int(items(a[0]) * items(a[0]) / 1000))
	}},
	{
		[]string{"regexReplaceAll", "mustRegexReplaceAll", "regexReplaceAllLiteral", "mustRegexReplaceAllLiteral"},
		func(b *bounds, a []reflect.Value) error {
			if err := b.matches(a[0], a[1]); err != nil {
				return err
			}
			return replacement(a[1], a[2], length(a[1])+1)
		},
	},
	{
		[]string{
			"regexMatch", "mustRegexMatch", "regexFind", "mustRegexFind", "regexFindAll", "mustRegexFindAll",
			"regexSplit", "mustRegexSplit",
		},
		func(b *bounds, a []reflect.Value) error { return b.matches(a[0], a[1]) },
	},
	{[]string{"genPrivateKey"}, func(b *bounds, _ []reflect.Value) error { return b.spend(costLargeKey) }},
	{
		[]string{"genCA", "genCAWithKey", "genSelfSignedCert", "genSelfSignedCertWithKey", "genSignedCert", "genSignedCertWithKey"},
		func(b *bounds, _ []reflect.Value) error { return b.spend(costKey) },
	},
	{[]string{"has", "mustHas"}, func(b *bounds, a []reflect.Value) error { return b.spend(int(items(a[1]) / 10)) }},
	{[]string{"split", "splitList", "splitn"}, func(b *bounds, a []reflect.Value) error { return b.items(countOf(a[0], a[len(a)-1])) }},
	{[]string{"fromYaml", "fromYamlArray", "fromJson", "fromJsonArray", "mustFromJson"}, parses},
	{
		[]string{"bcrypt", "htpasswd", "derivePassword", "encryptAES", "decryptAES"},
		func(b *bounds, _ []reflect.Value) error { return b.spend(costHash) },
	},
	{[]string{
		"toYaml", "mustToYaml", "toYamlPretty", "toJson", "mustToJson", "toPrettyJson", "mustToPrettyJson", "toRawJson", "mustToRawJson",
		"deepCopy", "mustDeepCopy", "toString", "toStrings", "quote", "squote", "cat", "print", "println", "html", "js", "urlquery",
	}, walked},
}

// made are functions that change a map in their arguments. A map that contains itself could not be printed, because that would never end.
var made = []string{"set", "merge", "mustMerge", "mergeOverwrite", "mustMergeOverwrite"}

// boundFunctions wraps the given functions that could go beyond the bounds, so that they keep to the bounds.
func boundFunctions(given template.FuncMap, b *bounds) template.FuncMap {
	out := template.FuncMap{}
	for name, f := range given {
		if grows(name, f) {
			out[name] = guard(b, name, f, nil, nil)
		}
	}
	add := func(name string, c check) {
		if f := given[name]; f != nil {
			out[name] = guard(b, name, f, c, nil)
		}
	}
	for name, c := range checks {
		add(name, c)
	}
	for _, family := range families {
		for _, name := range family.names {
			add(name, family.check)
		}
	}
	for _, name := range made {
		if f := given[name]; f != nil {
			out[name] = guard(b, name, f, nil, func(args []reflect.Value) error { return b.walk(args...) })
		}
	}
	return out
}

// withPrinting returns the functions together with the functions of text/template that could go beyond the bounds.
func withPrinting(all template.FuncMap) template.FuncMap {
	all = maps.Clone(all)
	all["printf"], all["print"], all["println"] = fmt.Sprintf, fmt.Sprint, fmt.Sprintln
	all["html"], all["js"], all["urlquery"] = template.HTMLEscaper, template.JSEscaper, template.URLQueryEscaper
	return all
}

var errorType = reflect.TypeFor[error]()

// guard wraps a function: before checks its arguments, and after checks them again when the function has run.
func guard(b *bounds, name string, function any, before check, after func(args []reflect.Value) error) any {
	if f := quickGuard(b, &name, function, before); f != nil && after == nil {
		return f
	}
	f := reflect.ValueOf(function)
	t := f.Type()
	in := make([]reflect.Type, t.NumIn())
	for i := range in {
		in[i] = t.In(i)
	}
	out := []reflect.Type{t.Out(0), errorType}
	return reflect.MakeFunc(reflect.FuncOf(in, out, t.IsVariadic()), func(args []reflect.Value) []reflect.Value {
		fail := func(err error) []reflect.Value {
			return []reflect.Value{reflect.Zero(out[0]), reflect.ValueOf(&err).Elem()}
		}
		err := b.takes(args)
		if err == nil && before != nil {
			err = before(b, flat(args, t.IsVariadic()))
		}
		if err != nil {
			return fail(err)
		}
		var results []reflect.Value
		b.calls(&name)
		if t.IsVariadic() {
			results = f.CallSlice(args)
		} else {
			results = f.Call(args)
		}
		b.called()
		if after != nil {
			err = after(flat(args, t.IsVariadic()))
		}
		if err == nil {
			err = b.makes(results[0])
		}
		if err != nil {
			return fail(err)
		}
		if len(results) == 1 {
			results = append(results, reflect.Zero(errorType))
		}
		return results
	}).Interface()
}

// flat returns the arguments with the variadic ones as separate arguments.
func flat(args []reflect.Value, variadic bool) []reflect.Value {
	if !variadic {
		return args
	}
	rest := args[len(args)-1]
	out := append([]reflect.Value{}, args[:len(args)-1]...)
	for i := range rest.Len() {
		out = append(out, rest.Index(i))
	}
	return out
}

func tooMuch(bytes float64) error {
	return beyond("it would make %.0f bytes, and %d MiB is the most at once", bytes, maxText>>20)
}

// number and length return the number in an argument, and the length of an argument; 0 if it has none. They return floats, whose products
// do not overflow.
func number(v reflect.Value) float64 {
	if v.CanInt() {
		return float64(v.Int())
	}
	return 0
}

func length(v reflect.Value) float64 {
	if v.Kind() == reflect.String {
		return float64(v.Len())
	}
	return 0
}

func abs(n float64) float64 { return max(n, -n) }

func product(n, size float64) error {
	if n*size > maxText {
		return tooMuch(n * size)
	}
	return nil
}

// replacement checks the size of a text in which so many places are replaced by another text.
func replacement(text, by reflect.Value, places float64) error {
	if size := length(text) + places*length(by); size > 8*maxText { // most places do not match, and the result is checked again
		return tooMuch(size)
	}
	return nil
}

func countOf(old, text reflect.Value) float64 {
	if length(old) == 0 {
		return length(text) + 1
	}
	return float64(strings.Count(text.String(), old.String()))
}

func indents(_ *bounds, a []reflect.Value) error {
	return product(abs(number(a[0])), float64(1+strings.Count(a[1].String(), "\n")))
}

// joined checks the size of a list that is joined with a separator.
func joined(b *bounds, a []reflect.Value) error {
	if err := b.walk(a...); err != nil {
		return err
	}
	return product(items(a[1]), length(a[0]))
}

// reads counts the cost of searching texts.
func (b *bounds) reads(texts ...reflect.Value) error {
	size := 0.0
	for _, t := range texts {
		size += length(t)
	}
	return b.spend(int(size / 100))
}

func (b *bounds) items(n float64) error {
	if n > maxItems {
		return beyond("it would make %.0f items, and %d are the most", n, maxItems)
	}
	return b.spend(int(n / 100))
}

// turns returns how many numbers a range with a step has.
func turns(from, step, to float64) float64 {
	if step == 0 {
		return 0
	}
	return max(0, (to-from)/step)
}

func sequence(a []reflect.Value) float64 {
	switch len(a) {
	case 1:
		return abs(number(a[0]))
	case 2:
		return abs(number(a[1]) - number(a[0]))
	case 3:
		return turns(number(a[0]), number(a[1]), number(a[2]))
	}
	return 0
}

// printed checks an upper bound for the result of printf: widths and precisions, and for each verb the longest argument.
func printed(b *bounds, a []reflect.Value) error {
	if len(a) == 0 || a[0].Kind() != reflect.String {
		return nil
	}
	longest, widest, most := 0.0, 0.0, 1.0 // most: the values within a value, each of which gets the width of the verb
	for _, v := range a[1:] {
		if v.Kind() == reflect.Interface {
			v = v.Elem()
		}
		held := walker{}
		if err := held.value(v); err != nil {
			return err
		}
		longest, widest, most = max(longest, float64(held.size+held.items)), max(widest, abs(number(v))), max(most, float64(held.items))
	}
	format, size := a[0].String(), length(a[0])
	for i := 0; i < len(format); i++ {
		if format[i] != '%' {
			continue
		}
		size += longest
		for i++; i < len(format) && strings.IndexByte("+-# 0123456789.[]*", format[i]) >= 0; i++ {
			n := 0.0
			for ; i < len(format) && format[i] >= '0' && format[i] <= '9'; i++ {
				n = n*10 + float64(format[i]-'0')
			}
			size += most * min(n, 1e6) // fmt refuses larger widths
			if i < len(format) && format[i] == '*' {
				size += most * min(widest, 1e6)
			}
			if i < len(format) && strings.IndexByte("+-# .[]*", format[i]) < 0 {
				break
			}
		}
	}
	if size > maxText {
		return tooMuch(size)
	}
	return b.spend(int(longest / 100))
}

// walked checks the arguments of functions that print whole values.
func walked(b *bounds, a []reflect.Value) error { return b.walk(a...) }

// walk visits values as a printer does. It returns an error if the values are too large or contain themselves.
func (b *bounds) walk(values ...reflect.Value) error {
	w := walker{}
	for _, v := range values {
		if err := w.value(v); err != nil {
			return err
		}
	}
	return b.spend(w.items / 100)
}

// maxHeld is how deep a value may be nested. A printer would run out of stack on a deeper value, or on a value that contains itself.
const maxHeld = 200

type walker struct{ items, size, depth int }

func (w *walker) value(v reflect.Value) error {
	if v.Kind() == reflect.Interface || v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	if w.items++; w.items > maxItems {
		return beyond("a value has more than %d items in it, counted wherever they are", maxItems)
	}
	switch v.Kind() { //nolint:exhaustive // other kinds contain no values
	case reflect.String:
		if w.size += v.Len(); w.size > 4*maxText || v.Len() > maxText && utf8.ValidString(v.String()) {
			return tooMuch(float64(w.size))
		}
	case reflect.Map, reflect.Slice, reflect.Array:
		if v.Kind() != reflect.Map && v.Type().Elem().Kind() == reflect.Uint8 {
			return nil
		}
		if w.depth++; w.depth > maxHeld {
			return beyond("a value is more than %d deep: it holds itself", maxHeld)
		}
		defer func() { w.depth-- }()
		if v.Kind() == reflect.Map {
			for each := v.MapRange(); each.Next(); {
				w.size += len(each.Key().String())
				if err := w.value(each.Value()); err != nil {
					return err
				}
			}
			return nil
		}
		for i := range v.Len() {
			if err := w.value(v.Index(i)); err != nil {
				return err
			}
		}
	}
	return nil
}
