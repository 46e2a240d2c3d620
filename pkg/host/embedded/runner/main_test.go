package runner

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// The test binary is also the program of the images that it runs.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "manager" {
		manage()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// manage is a manager as they are: flags for its addresses, a webhook, a client from KUBECONFIG.
func manage() {
	if len(os.Args) > 2 && os.Args[1] == "cat" { // what an exec probe may call
		if _, err := os.ReadFile(os.Args[2]); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		return
	}
	health := flag.String("health-addr", ":9440", "The address the health endpoint binds to.")
	webhook := flag.Int("webhook-port", 9443, "Webhook Server port")
	certs := flag.String("webhook-cert-dir", "/tmp/k8s-webhook-server/serving-certs/", "Webhook cert dir.")
	elect := flag.Bool("leader-elect", false, "Enable leader election.")
	fail := flag.String("fail", "", "Say this and exit with 3.")
	unready := flag.Bool("unready", false, "Never be ready.")
	fixed := flag.Int("debug", 0, "Listen on this one, too.")
	peer := flag.String("peer-addr", "", "The address of another one.")
	flag.Parse()
	if *elect {
		fmt.Println("leader election is on")
		os.Exit(4)
	}
	if *fail != "" {
		fmt.Println("starting")
		fmt.Println(*fail)
		os.Exit(3)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/readyz", func(w http.ResponseWriter, _ *http.Request) {
		if *unready {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	mux.HandleFunc("/about", func(w http.ResponseWriter, r *http.Request) {
		cert, err := os.ReadFile(filepath.Join(*certs, "tls.crt"))
		about := about{Env: os.Environ(), Args: os.Args, Cert: string(cert), Peer: *peer, Calls: calls(r.Context())}
		if err != nil {
			about.Cert = err.Error()
		}
		root, _ := os.ReadDir(".")
		for _, e := range root {
			about.Root = append(about.Root, e.Name())
		}
		_ = json.NewEncoder(w).Encode(about)
	})
	mux.HandleFunc("/file", func(w http.ResponseWriter, r *http.Request) {
		content, err := os.ReadFile(r.URL.Query().Get("name"))
		if err != nil {
			w.WriteHeader(http.StatusNotFound)
		}
		_, _ = w.Write(content)
	})
	var sick atomic.Bool
	mux.HandleFunc("/fall-sick", func(http.ResponseWriter, *http.Request) { sick.Store(true) })
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) {
		if sick.Load() {
			w.WriteHeader(http.StatusInternalServerError)
		}
	})
	mux.HandleFunc("/crash", func(http.ResponseWriter, *http.Request) { fmt.Println("told to crash"); os.Exit(5) })
	hook, err := net.Listen("tcp", fmt.Sprintf(":%d", *webhook))
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	go func() { _ = http.Serve(hook, mux) }()
	if *fixed != 0 {
		if _, err := net.Listen("tcp", fmt.Sprintf(":%d", *fixed)); err != nil {
			fmt.Println("debug server:", err)
			os.Exit(1)
		}
	}
	fmt.Println("listening on", *health)
	fmt.Println(http.ListenAndServe(*health, mux))
	os.Exit(1)
}

// about is what a manager says of itself.
type about struct {
	Env, Args  []string
	Cert, Peer string
	Calls      []string
	Root       []string // what is in the folder that it was started in
}

// calls tries the requests that its ServiceAccount may and may not make.
func calls(ctx context.Context) []string {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		return []string{err.Error()}
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return []string{err.Error()}
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	_, configs := client.CoreV1().ConfigMaps("default").List(ctx, metav1.ListOptions{})
	_, secrets := client.CoreV1().Secrets("default").List(ctx, metav1.ListOptions{})
	return []string{fmt.Sprint(configs), fmt.Sprint(secrets)}
}

func (a about) env(name string) string {
	for _, e := range a.Env {
		if value, ok := strings.CutPrefix(e, name+"="); ok {
			return value
		}
	}
	return ""
}
