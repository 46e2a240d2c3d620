package render_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"go.yaml.in/yaml/v3"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/fleetctl/fleetctl/pkg/render"
)

var values = []string{
	`{}`, `[]`, `{"a":{}}`, `{"a":[]}`, `{"a":null,"b":true,"c":1.5,"d":-3}`, `[[1,2],[[]],[{}],[{"a":1,"b":[2]}]]`,
	`{"a":[{"b":[{"c":"d"}]}]}`, `"text"`, `1`, `null`, `{"":""}`,
	`["yes","No","ON","null","~","1","1.0","0x1f","1e3","12:30:45","2001-01-01",".5","-","--","---","?","a: b","a:","a #b","#a"," a","a ","a\tb"]`,
	`["1.36.3","10m","172.16.0.0/16","v1.36.3","./charts/x","../x",".inf",".nan","0o7","0b1","1_000","<<","=","*a","&a","!a","@a","%a","|","` +
		"`" + `a"]`,
	`["a\nb","a\nb\n","a\nb\n\n","\na","\n"," a\nb","a\n b","a\n\tb","a\n\nb","a\r\nb","a\n ","a\n  \n","a \nb","a\n---\nb","# a\nb","a\n#b"]`,
	`["ü","日本","\u0000","\u0085","\u2028","\ufeff","\ud83d\ude00","\u007f","\\","\"","'","\u001b"]`,
	`{"a: b":1,"c#d":2,"e #f":3,"1":4,"true":5,"ü":6,"-":7,"a\nb":8}`,
	`{"data":{"script":"#!/bin/sh\nset -e\n\techo tab\n"},"x":[["a\nb\n"]]}`,
}

// same says whether the YAML of a JSON value reads as that value, for the parser that Kubernetes uses and for the other one.
func same(t *testing.T, src []byte) {
	t.Helper()
	var want any
	if err := json.Unmarshal(src, &want); err != nil {
		t.Fatal(err)
	}
	text := render.AppendYAML(nil, src)
	compare := func(name string, got any) {
		a, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		b, err := json.Marshal(got)
		if err != nil || !bytes.Equal(a, b) {
			t.Errorf("%s reads %s for %s (%v) in:\n%s", name, b, a, err, text)
		}
	}
	var got any
	if err := sigsyaml.Unmarshal(text, &got); err != nil {
		t.Errorf("sigs.k8s.io/yaml: %v in:\n%s", err, text)
		return
	}
	compare("sigs.k8s.io/yaml", got)
	got = nil
	if err := yaml.Unmarshal(text, &got); err != nil {
		t.Errorf("yaml.v3: %v in:\n%s", err, text)
		return
	}
	compare("yaml.v3", got)
}

func TestAppendYAML(t *testing.T) {
	for _, v := range values {
		same(t, []byte(v))
		same(t, []byte(`{"a":`+v+`,"b":[`+v+`,{"c":`+v+`}]}`))
	}
}

func FuzzAppendYAML(f *testing.F) {
	for _, v := range values {
		f.Add([]byte(v))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		var value any
		if json.Unmarshal(src, &value) != nil {
			return
		}
		canonical, err := json.Marshal(value)
		if err != nil {
			return
		}
		same(t, canonical)
	})
}
