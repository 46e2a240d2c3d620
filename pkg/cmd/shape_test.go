package cmd

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Every command is newXCmd, complete and runX: newXCmd declares flags, complete parses, runX calls one function of a workflow. Closures
// hold no logic, so that parsing is tested without running, and running without parsing.
func TestShapeOfCommands(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	commands := 0
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		found, faults := shapeOf(t, file, nil)
		commands += found
		for _, fault := range faults {
			t.Error(fault)
		}
	}
	if commands < 60 {
		t.Errorf("only %d commands were found: this test does not see how they are made any more", commands)
	}
}

// What the test above refuses, and what it lets pass.
func TestShapeFaults(t *testing.T) {
	for name, test := range map[string]struct{ source, fault string }{
		"running":               {`func newXCmd(f *factory) *cobra.Command { return &cobra.Command{RunE: running(f, o, runX)} }`, ""},
		"running, assigned":     {`func newXCmd(f *factory) *cobra.Command { c.Use, c.RunE = "x", running(f, o, runX); return c }`, ""},
		"one call":              {`func newXCmd(f *factory) *cobra.Command { return &cobra.Command{RunE: func() error { return runX(c.Context(), f, o) }} }`, ""},
		"complete, then run":    {`func newXCmd(f *factory) *cobra.Command { c.RunE = func() error { if err := o.complete(f); err != nil { return err }; return runX(ctx, f, o) }; return c }`, ""},
		"a completion":          {`func newXCmd(f *factory) *cobra.Command { completeFlag(c, "x", func() []string { return r.Names() }); return c }`, ""},
		"logic":                 {`func newXCmd(f *factory) *cobra.Command { c.RunE = func() error { if x { return nil }; return runX(ctx, f, o) }; return c }`, "RunE holds more than"},
		"logic behind complete": {`func newXCmd(f *factory) *cobra.Command { c.RunE = func() error { if err := o.complete(f); err != nil { y = 1; return err }; return runX(ctx, f, o) }; return c }`, "RunE holds more than"},
		"an assignment":         {`func newXCmd(f *factory) *cobra.Command { return &cobra.Command{RunE: func() error { o.x = 1; return runX(ctx, f, o) }} }`, "RunE holds more than"},
		"a workflow at once":    {`func newXCmd(f *factory) *cobra.Command { return &cobra.Command{RunE: func() error { return lifecycle.X(ctx, o) }} }`, "RunE holds more than"},
		"running a closure":     {`func newXCmd(f *factory) *cobra.Command { return &cobra.Command{RunE: running(f, o, func() error { return nil })} }`, "RunE holds more than"},
		"Run":                   {`func newXCmd(f *factory) *cobra.Command { return &cobra.Command{Run: func() {}} }`, "Run holds more than"},
		"a long closure": {
			`func newXCmd(f *factory) *cobra.Command { c.Args = func() error { x := 1; return y(x) }; return c }`,
			"a closure of newXCmd holds more than",
		},
		"a long method": {
			`func (f *factory) newXCmd() *cobra.Command { c.Args = func() error { x := 1; return y(x) }; return c }`,
			"a closure of newXCmd holds more than",
		},
		"run without context":  {`func runX(f *factory, o *xOptions) error { return nil }`, "runX does not begin with a context"},
		"run with the command": {`func runX(ctx context.Context, c *cobra.Command) error { return nil }`, "runX takes a command"},
	} {
		t.Run(name, func(t *testing.T) {
			_, faults := shapeOf(t, "x.go", "package cmd\n"+test.source)
			if text := strings.Join(faults, "\n"); test.fault == "" && text != "" || !strings.Contains(text, test.fault) {
				t.Errorf("faults: %q", faults)
			}
		})
	}
}

var (
	constructor = regexp.MustCompile(`^new[A-Z].*Cmd$`)
	runner      = regexp.MustCompile(`^run[A-Z]`)
	// wrappers give a RunE to commands that others make.
	wrappers = []string{"takes", "usageErrors"}
)

// shapeOf counts the commands that a file makes, and says what in it has another shape. source is the file's text if it is not nil.
func shapeOf(t *testing.T, name string, source any) (commands int, faults []string) {
	t.Helper()
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, name, source, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	fault := func(at ast.Node, format string, args ...any) {
		faults = append(faults, fmt.Sprintf("%s: %s", files.Position(at.Pos()), fmt.Sprintf(format, args...)))
	}
	for _, decl := range file.Decls {
		f, ok := decl.(*ast.FuncDecl)
		if !ok || slices.Contains(wrappers, f.Name.Name) {
			continue
		}
		if runner.MatchString(f.Name.Name) {
			if !isSelector(f.Type.Params.List[0].Type, "context", "Context") {
				fault(f, "%s does not begin with a context", f.Name.Name)
			}
			if slices.ContainsFunc(f.Type.Params.List, func(p *ast.Field) bool { return isCommand(p.Type) }) {
				fault(f, "%s takes a command: what it needs of flags and arguments belongs in its options", f.Name.Name)
			}
		}
		ast.Inspect(f, func(n ast.Node) bool {
			for key, value := range runsOf(n) {
				commands++
				if !isRun(value) {
					fault(value, "%s holds more than complete and run: write running(f, o, runX)", key)
				}
			}
			if closure, ok := n.(*ast.FuncLit); ok && constructor.MatchString(f.Name.Name) && len(closure.Body.List) > 1 && !isRun(closure) {
				fault(closure, "a closure of %s holds more than one statement: give it a name", f.Name.Name)
			}
			return true
		})
	}
	return commands, faults
}

// runsOf are the values that n gives to RunE and Run of a command.
func runsOf(n ast.Node) map[string]ast.Expr {
	found := map[string]ast.Expr{}
	add := func(name string, value ast.Expr) {
		if name == "RunE" || name == "Run" {
			found[name] = value
		}
	}
	switch n := n.(type) {
	case *ast.KeyValueExpr:
		if key, ok := n.Key.(*ast.Ident); ok {
			add(key.Name, n.Value)
		}
	case *ast.AssignStmt:
		for i, left := range n.Lhs {
			if field, ok := left.(*ast.SelectorExpr); ok && len(n.Lhs) == len(n.Rhs) {
				add(field.Sel.Name, n.Rhs[i])
			}
		}
	}
	return found
}

// isRun says whether a RunE is running(f, o, runX), or a closure that calls complete and then runX, or runX alone.
func isRun(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.CallExpr:
		return isCall(e, func(name string) bool { return name == "running" }) && len(e.Args) == 3 && isNamed(e.Args[2], runner.MatchString)
	case *ast.FuncLit:
		list := e.Body.List
		if len(list) == 2 && isComplete(list[0]) {
			list = list[1:]
		}
		if len(list) != 1 {
			return false
		}
		result, ok := list[0].(*ast.ReturnStmt)
		return ok && len(result.Results) == 1 && isCall(result.Results[0], runner.MatchString)
	}
	return false
}

// isComplete says whether s is `if err := o.complete(…); err != nil { return err }`.
func isComplete(s ast.Stmt) bool {
	check, ok := s.(*ast.IfStmt)
	if !ok || check.Else != nil || len(check.Body.List) != 1 {
		return false
	}
	init, ok := check.Init.(*ast.AssignStmt)
	if !ok || len(init.Rhs) != 1 {
		return false
	}
	call, ok := init.Rhs[0].(*ast.CallExpr)
	if !ok {
		return false
	}
	if _, ok := check.Body.List[0].(*ast.ReturnStmt); !ok {
		return false
	}
	method, ok := call.Fun.(*ast.SelectorExpr)
	return ok && method.Sel.Name == "complete"
}

func isCall(e ast.Expr, name func(string) bool) bool {
	call, ok := e.(*ast.CallExpr)
	return ok && isNamed(call.Fun, name)
}

func isNamed(e ast.Expr, name func(string) bool) bool {
	ident, ok := e.(*ast.Ident)
	return ok && name(ident.Name)
}

func isCommand(e ast.Expr) bool {
	pointer, ok := e.(*ast.StarExpr)
	return ok && isSelector(pointer.X, "cobra", "Command")
}

func isSelector(e ast.Expr, pkg, name string) bool {
	s, ok := e.(*ast.SelectorExpr)
	return ok && s.Sel.Name == name && isNamed(s.X, func(n string) bool { return n == pkg })
}
