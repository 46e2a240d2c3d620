package review

import (
	"encoding/binary"
	"io/fs"
	"reflect"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/render"
)

// fill gives every field of a struct a value of its own, so that one that is forgotten shows.
func fill(v reflect.Value, n *int) {
	*n++
	switch v.Kind() {
	case reflect.String:
		v.SetString("text " + string(rune('a'+*n%26)) + string(rune('a'+*n/26%26)))
	case reflect.Int:
		v.SetInt(int64(*n))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range v.Len() {
			fill(v.Index(i), n)
		}
	case reflect.Uint8:
		v.SetUint(uint64(*n % 256))
	case reflect.Struct:
		for _, field := range v.Fields() {
			fill(field, n)
		}
	case reflect.Pointer:
	default:
		panic(v.Kind())
	}
}

func filledResult() *rendered {
	n := 0
	in := &rendered{render.Result{
		Objects: []*render.Object{{}, {}, {}, {}}, Kustomizations: []*render.Kustomization{{}, {}}, Releases: []*render.Release{{}, {}},
		Findings: make(diag.Findings, 2),
	}}
	alone := &render.Object{}
	for _, into := range []any{
		in.Objects[0], in.Objects[1], in.Kustomizations[0], in.Releases[0], in.Releases[1], &in.Findings[0], alone, // the others stay empty
	} {
		fill(reflect.ValueOf(into).Elem(), &n)
	}
	*in.Objects[3] = *in.Objects[1] // like another one, but for its name
	in.Objects[3].Name = "other"
	in.Objects[2].JSON, in.Findings[1].Summary = []byte{}, "\x00\xff" // any bytes
	in.Releases[0].Object, in.Releases[1].Object = in.Objects[1], alone
	return in
}

func TestResultCrosses(t *testing.T) {
	t.Parallel()
	in := filledResult()
	text, err := in.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	out := &rendered{}
	if err := out.UnmarshalBinary(text); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(in, out) {
		t.Errorf("got %+v, want %+v", out, in)
	}
	if out.Releases[0].Object != out.Objects[1] {
		t.Error("an object became two")
	}
	for cut := range text {
		if err := new(rendered).UnmarshalBinary(text[:cut:cut]); err == nil {
			t.Errorf("%d of %d bytes are taken for all", cut, len(text))
		}
	}
	if err := new(rendered).UnmarshalBinary(append(text, 0)); err == nil {
		t.Error("more than all is taken for all")
	}
}

// TestEveryFieldOfAnObjectCrosses changes one field after the other, for objects are written as what differs from the one before.
func TestEveryFieldOfAnObjectCrosses(t *testing.T) {
	t.Parallel()
	n := 0
	first := &render.Object{}
	fill(reflect.ValueOf(first).Elem(), &n)
	for i := range reflect.TypeFor[render.Object]().NumField() {
		second := *first
		fill(reflect.ValueOf(&second).Elem().Field(i), &n)
		third := second
		reflect.ValueOf(&third).Elem().Field(i).SetZero()
		third.JSON = []byte{} // never nil
		p := newPacker(0)
		packObject(p, first, &render.Object{})
		packObject(p, &second, first)
		packObject(p, &third, &second)
		u := &unpacker{in: p.out}
		var got [3]render.Object
		unpackObject(u, &got[0], &render.Object{})
		unpackObject(u, &got[1], &got[0])
		unpackObject(u, &got[2], &got[1])
		if err := u.done(); err != nil {
			t.Fatal(err)
		}
		for j, want := range []*render.Object{first, &second, &third} {
			if !reflect.DeepEqual(got[j], *want) {
				t.Errorf("field %s: got %+v, want %+v", reflect.TypeFor[render.Object]().Field(i).Name, got[j], *want)
			}
		}
	}
}

func TestSidesCross(t *testing.T) {
	t.Parallel()
	in := &sides{Dir: "/repo", CacheDir: "/cache", Before: &snapshot{Commit: "0123456789abcdef", Files: []snapshotFile{
		{Path: "a/b/c.yaml", Size: 3, Content: []byte("c\r\n")},
		{Path: "a/b.yaml", Size: 2, Content: []byte("b\n")},
		{Path: "a/link", Mode: fs.ModeSymlink, Content: []byte{}},
		{Path: "large.yaml", Size: 1 << 40, Content: []byte{}},
		{Path: "picture.jpg", Content: []byte{}, Absent: true},
	}}}
	text, err := in.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	out := &sides{}
	if err := out.UnmarshalBinary(text); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(in, out) {
		t.Errorf("got %+v, want %+v", out, in)
	}
	for cut := range text {
		if err := new(sides).UnmarshalBinary(text[:cut:cut]); err == nil {
			t.Errorf("%d of %d bytes are taken for all", cut, len(text))
		}
	}
}

// FuzzResultFromAProcess reads what a process that was taken over might write.
func FuzzResultFromAProcess(f *testing.F) {
	text, err := filledResult().AppendBinary(nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Fuzz(func(t *testing.T, text []byte) {
		var out rendered
		if out.UnmarshalBinary(text) != nil {
			return
		}
		again, err := out.AppendBinary(nil)
		if err != nil {
			t.Fatal(err)
		}
		var twice rendered
		if err := twice.UnmarshalBinary(again); err != nil || !reflect.DeepEqual(out, twice) {
			t.Errorf("%+v became %+v: %v", out, twice, err)
		}
	})
}

// More objects than a fleet may have, in three bytes each, take no memory.
func TestNumbersAreBounded(t *testing.T) {
	t.Parallel()
	text := append(binary.AppendUvarint(nil, render.MaxObjects+1), make([]byte, 3*(render.MaxObjects+2))...)
	var out rendered
	if err := out.UnmarshalBinary(text); err == nil || len(out.Objects) > 0 {
		t.Errorf("%d objects are read: %v", len(out.Objects), err)
	}
}
