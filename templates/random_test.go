package templates_test

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp/syntax"
	"slices"
	"strings"
	"testing"
)

var (
	seed  = flag.Uint64("seed", 1, "which random values the charts get")
	times = flag.Int("times", 12, "how many random values each chart gets")
)

// randomValues returns a function that makes values that the schema of a flavour accepts: each setting that is not required is there or is
// not, and each value is any that its schema takes, more often one at an edge of it. The same number makes the same values.
func randomValues(t *testing.T, flavour string) func(number int) map[string]any {
	t.Helper()
	s, validate := schemaOf(t, flavour), validator(t, flavour)
	return func(number int) map[string]any {
		t.Helper()
		r := &randomizer{rand.New(rand.NewPCG(*seed, uint64(number)))}
		for range 200 {
			values := overlay(s.Examples[0], r.object(s))
			agree(values)
			if validate(values) == nil {
				return values
			}
		}
		t.Fatalf("seed %d: no random values of %s are accepted by its schema", *seed, flavour)
		return nil
	}
}

type randomizer struct{ *rand.Rand }

func (r *randomizer) chance(percent int) bool { return r.IntN(100) < percent }

func (r *randomizer) value(s *schema) any {
	switch kind := r.kind(s); {
	case len(s.Enum) > 0:
		return s.Enum[r.IntN(len(s.Enum))]
	case kind == "object":
		return r.object(s)
	case kind == "array":
		return r.list(s)
	case kind == "boolean":
		return r.chance(50)
	case kind == "integer":
		return r.number(s)
	default:
		return r.text(s)
	}
}

// kind returns one of the types that the schema allows.
func (r *randomizer) kind(s *schema) any {
	if all, ok := s.Type.([]any); ok {
		return all[r.IntN(len(all))]
	}
	return s.Type
}

func (r *randomizer) object(s *schema) map[string]any {
	out, without := map[string]any{}, r.one(s)
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		if !slices.Contains(without, name) && (s.needs(name) || r.chance(40)) {
			out[name] = r.value(s.Properties[name])
		}
	}
	if free := s.free(); free != nil && free.Type != nil {
		for range 1 + r.IntN(2) {
			out[r.text(s.PropertyNames)] = r.value(free)
		}
	}
	return out
}

// one chooses one of the sets of settings of which the object needs one, and returns the settings of the others.
func (r *randomizer) one(s *schema) []string {
	var without []string
	if len(s.AnyOf) == 0 {
		return nil
	}
	chosen := r.IntN(len(s.AnyOf))
	for i, alternative := range s.AnyOf {
		if i != chosen {
			without = append(without, alternative.Required...)
		}
	}
	return without
}

// needs tells whether an object of the schema may have to have this setting.
func (s *schema) needs(name string) bool {
	return slices.Contains(s.Required, name) ||
		slices.ContainsFunc(s.AnyOf, func(one *schema) bool { return slices.Contains(one.Required, name) })
}

func (r *randomizer) list(s *schema) []any {
	out := []any{}
	for range r.IntN(min(4, *s.MaxItems+1)) {
		item := r.value(s.Items)
		if text, ok := item.(string); ok && s.UniqueItems && slices.Contains(out, any(text)) {
			continue
		}
		out = append(out, item)
	}
	return out
}

func (r *randomizer) number(s *schema) int {
	low, high := 0, 1000
	if s.Minimum != nil {
		low = int(*s.Minimum)
	}
	if s.Maximum != nil {
		high = int(*s.Maximum)
	}
	switch r.IntN(4) {
	case 0:
		return low
	case 1:
		return high
	}
	return low + r.IntN(high-low+1)
}

// text returns a text of the schema's pattern and length.
func (r *randomizer) text(s *schema) string {
	pattern := s.Pattern
	if pattern == "" {
		pattern = `^[ -~]{0,20}$`
	}
	tree, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		panic(err)
	}
	tree = tree.Simplify()
	for range 100 {
		var b strings.Builder
		r.write(&b, tree)
		if text := b.String(); s.admits(text) {
			return text
		}
	}
	panic(fmt.Sprintf("no text of %s is admitted", pattern))
}

// write writes a text that a pattern matches. Of a repetition, it mostly takes few.
func (r *randomizer) write(b *strings.Builder, re *syntax.Regexp) {
	switch re.Op {
	case syntax.OpLiteral:
		b.WriteString(string(re.Rune))
	case syntax.OpCharClass:
		b.WriteRune(r.char(re.Rune))
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		b.WriteRune(r.char([]rune{' ', '~'}))
	case syntax.OpCapture, syntax.OpConcat:
		for _, part := range re.Sub {
			r.write(b, part)
		}
	case syntax.OpAlternate:
		r.write(b, re.Sub[r.IntN(len(re.Sub))])
	case syntax.OpStar, syntax.OpPlus, syntax.OpQuest:
		r.repeat(b, re)
	}
}

func (r *randomizer) repeat(b *strings.Builder, re *syntax.Regexp) {
	least, most := 0, 4
	switch {
	case re.Op == syntax.OpPlus:
		least = 1
	case re.Op == syntax.OpQuest:
		most = 1
	case r.chance(5):
		most = 80
	}
	for range least + r.IntN(most-least+1) {
		r.write(b, re.Sub[0])
	}
}

// char returns a character of a class, given as pairs of first and last ones: each range is as likely as another, so that the few signs
// are not rare among the letters.
func (r *randomizer) char(class []rune) rune {
	for {
		pair := 2 * r.IntN(len(class)/2)
		first, last := class[pair], min(class[pair+1], '~')
		if first <= last {
			return first + rune(r.IntN(int(last-first)+1))
		}
	}
}

// agree makes values fit each other where a schema cannot say so: zones and keys are of the region, and pools have names of their own.
func agree(values map[string]any) {
	region, _ := values["region"].(string)
	place := func(in map[string]any, field, text string) {
		switch in[field].(type) {
		case string:
			in[field] = text
		case []any:
			in[field] = []any{text}
		}
	}
	zone := region + "-a"
	if _, ok := values["project"]; !ok {
		zone = region + "a"
	}
	plane, _ := values["controlPlane"].(map[string]any)
	if access, ok := plane["access"].(map[string]any); ok {
		place(access, "allowedCIDRs", "203.0.113.0/24")
	}
	if region != "" {
		place(values, "location", region)
		place(plane, "zones", zone)
	}
	place(plane, "encryptionKey", "arn:aws:kms:"+region+":111122223333:key/1")
	place(values, "diskEncryptionKey", "arn:aws:kms:"+region+":111122223333:key/1")
	addons, _ := values["addons"].([]any)
	for _, addon := range addons {
		place(addon.(map[string]any), "configuration", `{"a": 1}`)
	}
	pools, _ := values["pools"].([]any)
	for i, item := range pools {
		pool, _ := item.(map[string]any)
		pool["name"] = fmt.Sprintf("p%d", i)
		if _, ok := pool["mode"]; ok && i == 0 {
			pool["mode"], pool["spot"] = "System", false
		}
		if region != "" {
			place(pool, "zone", zone)
			place(pool, "zones", zone)
		}
		if n, ok := pool["replicas"].(int); ok {
			pool["replicas"] = n - n%3 // as many in each of the zones
		}
		if low, ok := pool["min"].(int); ok {
			pool["min"] = min(low, pool["max"].(int))
		}
	}
}

// Random values follow their schema: each setting is among them, and they are the same for the same seed.
func TestRandomValues(t *testing.T) {
	for _, flavour := range flavours(t) {
		t.Run(flavour, func(t *testing.T) {
			s, missing, random := schemaOf(t, flavour), map[string]bool{}, randomValues(t, flavour)
			walk(s, "", func(at string, _ *schema) { missing[at] = true })
			for number := range 100 {
				values := random(number)
				if number == 0 && fmt.Sprint(random(0)) != fmt.Sprint(values) {
					t.Errorf("seed %d makes %v, then %v", *seed, values, random(0))
				}
				markUsed(missing, "", values, s)
			}
			for at := range missing {
				t.Errorf("seed %d: %s is never set", *seed, at)
			}
		})
	}
}
