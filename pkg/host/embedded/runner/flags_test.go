package runner

import (
	"slices"
	"testing"
)

// What the programs say themselves, shortened.
const (
	pflagHelp = `Usage of core:
      --diagnostics-address string                    The address the diagnostics endpoint binds to. Per default metrics are served via https and withauthentication/authorization. To serve via http and without authentication/authorization set --insecure-diagnostics. (default ":8443")
      --feature-gates mapStringBool                   A set of key=value pairs that describe feature gates. Options are:
                                                      AllAlpha=true|false (ALPHA - default=false)
                                                      --not-a-flag=true
      --health-addr string                            The address the health endpoint binds to. (default ":9440")
      --kubeconfig string                             Paths to a kubeconfig. Only required if out-of-cluster.
      --leader-elect                                  Enable leader election for controller manager.
      --profiler-address string                       Bind address to expose the pprof profiler (e.g. localhost:6060)
  -v, --v Level                                       number for the log level verbosity
      --webhook-cert-dir string                       Webhook cert dir. (default "/tmp/k8s-webhook-server/serving-certs/")
      --webhook-port int                              Webhook Server port (default 9443)
`
	goHelp = `Usage of manager:
  -health-addr string
    	The address the health endpoint binds to. (default ":9440")
  -leader-elect
    	Enable leader election.
`
	fluxHelp = `Usage of notification-controller:
      --events-addr string                        The address the event endpoint binds to. (default ":9090")
      --receiverAddr string                       The address the webhook receiver endpoint binds to. (default ":9292")
`
	certManagerHelp = `Flags:
      --healthz-port int                             port number to listen on for insecure healthz connections (default 6080)
      --metrics-listen-address string                The host and port (default "0.0.0.0:9402")
      --secure-port int                              port number to listen on for secure TLS connections (default 6443)
      --acme-port int                                not one to listen on (default 402)
`
)

func TestParseHelp(t *testing.T) {
	flags := parseHelp(pflagHelp)
	for name, want := range map[string]flagInfo{
		"diagnostics-address": {"diagnostics-address", "string", ":8443", "--"},
		"leader-elect":        {"leader-elect", "", "", "--"},
		"v":                   {"v", "Level", "", "--"},
		"webhook-cert-dir":    {"webhook-cert-dir", "string", "/tmp/k8s-webhook-server/serving-certs/", "--"},
		"webhook-port":        {"webhook-port", "int", "9443", "--"},
		"profiler-address":    {"profiler-address", "string", "", "--"},
		"not-a-flag":          {},
	} {
		if flags[name] != want {
			t.Errorf("%s: got %+v, want %+v", name, flags[name], want)
		}
	}
	flags = parseHelp(goHelp)
	if flags["health-addr"] != (flagInfo{"health-addr", "string", ":9440", "-"}) || flags["leader-elect"].Type != "" {
		t.Errorf("flag package: %+v", flags)
	}
	if got := parseHelp("panic: no such file\n\tgoroutine 1"); len(got) != 0 {
		t.Errorf("flags of a crash: %v", got)
	}
}

func TestListeners(t *testing.T) {
	for what, tt := range map[string]struct {
		help     string
		args     []string
		declared []int32
		want     []listener
	}{
		"defaults": {pflagHelp, nil, nil, []listener{
			{"diagnostics-address", 8443, false},
			{"health-addr", 9440, false},
			{"webhook-port", 9443, true},
		}},
		"given": {
			pflagHelp,
			[]string{"--diagnostics-address=:7", "--health-addr", "127.0.0.1:9440", "--webhook-port=1"},
			[]int32{9440},
			[]listener{{"diagnostics-address", 7, false}, {"health-addr", 9440, false}, {"webhook-port", 1, true}},
		},
		"off": {pflagHelp, []string{"--diagnostics-address=0", "--health-addr=", "--webhook-port=0"}, nil, nil},
		"events of flux": {
			fluxHelp,
			[]string{"--events-addr=http://notification-controller.flux-system.svc/"},
			nil,
			[]listener{{"receiverAddr", 9292, false}},
		},
		"cert-manager": {
			certManagerHelp,
			[]string{"--secure-port=10250"},
			[]int32{10250, 6080},
			[]listener{{"secure-port", 10250, true}, {"healthz-port", 6080, true}, {"metrics-listen-address", 9402, false}},
		},
		"without help": {
			"",
			[]string{"--metrics-bind-address=:8080", "--port=8081", "--target=example.com:8080"},
			[]int32{8081},
			[]listener{{"metrics-bind-address", 8080, false}, {"port", 8081, true}},
		},
	} {
		known := parseHelp(tt.help)
		declared := map[int32]bool{}
		for _, p := range tt.declared {
			declared[p] = true
		}
		s := &argSet{args: parseArgs(tt.args, known), known: known}
		if got := s.listeners(declared); !slices.Equal(got, tt.want) {
			t.Errorf("%s: got %+v, want %+v", what, got, tt.want)
		}
	}
}

func TestArgumentsStayAsTheyAre(t *testing.T) {
	known := parseHelp(pflagHelp)
	args := []string{"serve", "--leader-elect", "--feature-gates=A=true,B=false", "-v=2", "--", "-", "--unknown", "value"}
	s := &argSet{args: parseArgs(args, known), known: known}
	if got := s.strings(); !slices.Equal(got, args) {
		t.Errorf("got %q", got)
	}
	s.set("leader-elect", "false")
	s.set("kubeconfig", "/k")
	// What is behind "--" is no flag, so a new one comes before.
	want := []string{
		"serve", "--leader-elect=false", "--feature-gates=A=true,B=false", "-v=2", "--kubeconfig=/k", "--",
		"-", "--unknown", "value",
	}
	if got := s.strings(); !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}

func TestExpand(t *testing.T) {
	env := map[string]string{"A": "1", "B": "$(A)"}
	for text, want := range map[string]string{
		"$(A)": "1", "x$(A)y$(B)": "x1y$(A)", "$$(A)": "$(A)", "$(C)": "$(C)", "$A": "$A", "$(A": "$(A", "$": "$", "$$": "$", "": "",
	} {
		if got := expand(text, env); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func TestMountsRewrite(t *testing.T) {
	m := mounts{{"/tmp/certs", "/here/certs"}, {"/tmp", "/here/tmp"}, {"/data", "/here/data"}}
	for value, want := range map[string]string{
		"/tmp/certs/tls.crt": "/here/certs/tls.crt", "/tmp/x": "/here/tmp/x", "/data/": "/here/data", "/data": "/here/data",
		"/database": "/database", "data": "data", "": "", "/tmp/certs2": "/here/tmp/certs2",
	} {
		if got, _ := m.rewrite(value); got != want {
			t.Errorf("%q: got %q, want %q", value, got, want)
		}
	}
}
