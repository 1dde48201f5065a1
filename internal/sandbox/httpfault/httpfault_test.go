package httpfault

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

func TestTimesEndsTheFaults(t *testing.T) {
	t.Parallel()
	handler := New(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }))
	handler.Break(Faults{Status: 500, Times: 2})
	for i, want := range []int{500, 500, http.StatusTeapot} {
		recorder := httptest.NewRecorder()
		handler.ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, "/x?a=b", nil))
		if recorder.Code != want {
			t.Errorf("request %d: %d, want %d", i, recorder.Code, want)
		}
	}
	if handler.Faults() != (Faults{}) || len(handler.Requests()) != 3 {
		t.Errorf("faults %+v, %d requests", handler.Faults(), len(handler.Requests()))
	}
	handler.Break(Faults{Status: 500})
	handler.Heal()
	if handler.Faults() != (Faults{}) {
		t.Error("healing leaves faults")
	}
}

func TestDelayEndsWithTheRequest(t *testing.T) {
	t.Parallel()
	served := false
	handler := New(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { served = true }))
	handler.Break(Faults{DelayMillis: int(time.Hour.Milliseconds())})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil).WithContext(ctx))
	if served {
		t.Error("a request that was given up was served")
	}
}

func TestOnlyTheLastRequestsAreKept(t *testing.T) {
	t.Parallel()
	handler := New(http.NotFoundHandler())
	for range maxRequests + 10 {
		handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil))
	}
	if kept := len(handler.Requests()); kept > maxRequests || kept < maxRequests/2 {
		t.Errorf("%d requests are kept", kept)
	}
}

func TestFaultsInJSON(t *testing.T) {
	t.Parallel()
	text, err := json.Marshal(Faults{Status: 503, Times: 2, NotJSON: true, HangUp: true, DelayMillis: 5})
	if err != nil || string(text) != `{"times":2,"status":503,"notJson":true,"hangUp":true,"delayMillis":5}` {
		t.Errorf("%s, %v", text, err)
	}
}
