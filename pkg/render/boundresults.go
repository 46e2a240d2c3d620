package render

import "reflect"

// maxMade is all that the functions of one release may make together, in bytes: a template may keep it.
const maxMade = 1 << 30

// sizeOfItem is what an item of a list takes beside what it holds.
const sizeOfItem = 16

// makes counts what a function has made.
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

// costHold is what it costs to put a list or a map into another one: what is built in a loop cannot be so deep that it ends who prints it.
const costHold = 20

// holds counts what goes into what a function makes.
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

// engines are functions that make texts and that the engine has itself.
var engines = map[string]bool{"fail": true, "include": true, "tpl": true}

// grows tells of a function whether what it makes may be more than what it is given, and more again where it is given that: all that make
// texts and lists.
func grows(name string, function any) bool {
	t := reflect.TypeOf(function)
	if t == nil || t.Kind() != reflect.Func || t.NumOut() == 0 || engines[name] {
		return false
	}
	kind := t.Out(0).Kind()
	return kind == reflect.String || kind == reflect.Slice || name == "concat"
}

// items is how many a list has; 0 where it is none.
func items(v reflect.Value) float64 {
	if v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	if v.Kind() == reflect.Slice || v.Kind() == reflect.Array {
		return float64(v.Len())
	}
	return 0
}

// takes counts a call, and what it takes to go through its arguments.
func (b *bounds) takes(args []reflect.Value) error {
	size := 0.0
	for _, v := range args {
		size += length(v)/100 + items(v)
	}
	return b.spend(1 + int(size/100))
}

// quickGuard is guard for the functions that charts call most, without reflection; nil for others.
func quickGuard(b *bounds, function any, before check) any {
	fits := func(text string) (string, error) { return text, b.makesText(len(text)) }
	switch f := function.(type) {
	case func(...any) string: // all of them print what they are given
		return func(values ...any) (string, error) {
			if err := b.walkAll(values); err != nil {
				return "", err
			}
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
			return fits(f(n, text))
		}
	case func(string) string:
		if before == nil {
			return func(text string) (string, error) {
				if err := b.spend(1 + len(text)/10_000); err != nil {
					return "", err
				}
				return fits(f(text))
			}
		}
	case func(string, string) string:
		if before == nil {
			return func(first, second string) (string, error) {
				if err := b.spend(1 + (len(first)+len(second))/10_000); err != nil {
					return "", err
				}
				return fits(f(first, second))
			}
		}
	}
	return nil
}

// walkAll walks through values that may be plain.
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
