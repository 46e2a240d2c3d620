package render

import (
	"reflect"
	"regexp/syntax"

	"github.com/fleetctl/fleetctl/pkg/api/yamledit"
)

// maxMade is the most bytes that all functions of one release may make together, because a template may keep the results.
const maxMade = 1 << 30

// sizeOfItem is the size of an item of a list beside its content.
const sizeOfItem = 16

// sizeOfParsed is how many bytes of memory one byte of YAML or JSON needs at most after parsing.
const sizeOfParsed = 20

// parses counts the cost of reading a text as YAML or JSON. It refuses a text that its aliases make too large.
func parses(b *bounds, args []reflect.Value) error {
	text := args[0].String()
	if mayBomb([]byte(text)) {
		if _, err := yamledit.ParseWithin([]byte(text), Limits); yamledit.IsBeyond(err) {
			return beyond("the text that it reads is more than it may be: %v", err)
		}
	}
	if err := b.spend(len(text) / 100); err != nil {
		return err
	}
	return b.keeps(sizeOfParsed * len(text))
}

// largeText is the least length of a text for which the cost of a regular expression is computed.
const largeText = 64 << 10

// matches counts the cost of matching a text against a regular expression: each character is compared with each part of the expression. The
// function itself reports an invalid expression.
func (b *bounds) matches(expression, text reflect.Value) error {
	if length(text) >= largeText {
		if err := b.spend(int(length(text) * float64(instructions(expression.String())) / 200)); err != nil {
			return err
		}
	}
	return b.reads(expression, text)
}

func instructions(expression string) int {
	if parsed, err := syntax.Parse(expression, syntax.Perl); err == nil {
		if program, err := syntax.Compile(parsed.Simplify()); err == nil {
			return len(program.Inst)
		}
	}
	return 0
}

// makes counts the result of a function.
func (b *bounds) makes(v reflect.Value) error {
	if v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	kind := v.Kind()
	if kind == reflect.String {
		return b.makesText(v.Len())
	}
	if kind != reflect.Slice && kind != reflect.Map {
		return nil
	}
	if v.Len() > maxItems {
		return beyond("it would make %d items, and %d are the most", v.Len(), maxItems)
	}
	return b.keeps(sizeOfItem * v.Len())
}

func (b *bounds) makesText(size int) error {
	if size > maxText {
		return tooMuch(float64(size))
	}
	return b.keeps(size)
}

func (b *bounds) keeps(size int) error {
	if b.made += size; b.made > maxMade {
		return beyond("functions make more than %d MiB for these templates", maxMade>>20)
	}
	return nil
}

// costHold is the cost of putting a list or a map into another one. It keeps a loop from nesting values so deep that a printer runs out of
// stack.
const costHold = 20

// holds counts the values that go into the result of a function.
func holds(b *bounds, args []reflect.Value) error {
	held := make([]any, len(args))
	for i, v := range args {
		if v.IsValid() && v.CanInterface() {
			held[i] = v.Interface()
		}
	}
	return b.holds(held)
}

func (b *bounds) holds(values []any) error {
	held := 0
	for _, v := range values {
		switch v.(type) {
		case nil, bool, int, int64, float64, string:
		default:
			held++
		}
	}
	return b.spend(1 + costHold*held)
}

// engines are functions of Helm's engine itself that make texts.
var engines = map[string]bool{"fail": true, "include": true, "tpl": true}

// grows tells whether the result of a function may be larger than its arguments. A loop of such calls makes a text, list or map ever
// larger.
func grows(name string, function any) bool {
	t := reflect.TypeOf(function)
	if t == nil || t.Kind() != reflect.Func || t.NumOut() == 0 || engines[name] {
		return false
	}
	kind := t.Out(0).Kind()
	return kind == reflect.String || kind == reflect.Slice || kind == reflect.Map && name != "lookup" || name == "concat"
}

// items returns the length of a list, or 0 if the value is no list.
func items(v reflect.Value) float64 {
	if v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	if v.Kind() == reflect.Slice || v.Kind() == reflect.Array {
		return float64(v.Len())
	}
	return 0
}

// takes counts a call and the cost of reading its arguments.
func (b *bounds) takes(args []reflect.Value) error {
	size := 0.0
	for _, v := range args {
		size += length(v)/100 + items(v)
	}
	return b.spend(1 + int(size/100))
}

// quickGuard is guard without reflection, for the functions that charts call most. It returns nil for other functions.
func quickGuard(b *bounds, name *string, function any, before check) any {
	fits := func(text string) (string, error) {
		b.called()
		return text, b.makesText(len(text))
	}
	switch f := function.(type) {
	case func(...any) string: // all functions of this type print their arguments
		return func(values ...any) (string, error) {
			if err := b.walkAll(values); err != nil {
				return "", err
			}
			b.calls(name)
			return fits(f(values...))
		}
	case func(...any) map[string]any: // dict
		return func(values ...any) (map[string]any, error) { return f(values...), b.holds(values) }
	case func(...any) []any: // list
		return func(values ...any) ([]any, error) { return f(values...), b.holds(values) }
	case func(any) string:
		return func(value any) (string, error) {
			if err := b.walkAll([]any{value}); err != nil {
				return "", err
			}
			b.calls(name)
			return fits(f(value))
		}
	case func(int, string) string:
		return func(n int, text string) (string, error) {
			err := b.spend(1 + len(text)/10_000)
			if err == nil && before != nil {
				err = before(b, []reflect.Value{reflect.ValueOf(n), reflect.ValueOf(text)})
			}
			if err != nil {
				return "", err
			}
			b.calls(name)
			return fits(f(n, text))
		}
	case func(string) string:
		if before == nil {
			return func(text string) (string, error) {
				if err := b.spend(1 + len(text)/10_000); err != nil {
					return "", err
				}
				b.calls(name)
				return fits(f(text))
			}
		}
	case func(string, string) string:
		if before == nil {
			return func(first, second string) (string, error) {
				if err := b.spend(1 + (len(first)+len(second))/10_000); err != nil {
					return "", err
				}
				b.calls(name)
				return fits(f(first, second))
			}
		}
	}
	return nil
}

// walkAll is walk for values, many of which are of plain types.
func (b *bounds) walkAll(values []any) error {
	for _, v := range values {
		switch v := v.(type) {
		case nil, bool, int, int64, float64:
		case string:
			if len(v) > maxText {
				return tooMuch(float64(len(v)))
			}
		default:
			if err := b.walk(reflect.ValueOf(v)); err != nil {
				return err
			}
		}
	}
	return b.spend(1)
}
