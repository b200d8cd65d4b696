package main

import (
	"fmt"
	"net/http"
)

type counter struct{ visits map[string]int }

func (c *counter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.visits[r.URL.Path]++
	fmt.Fprintf(w, "%d visits\n", c.visits[r.URL.Path])
}

func main() {
	http.Handle("/", &counter{visits: map[string]int{}})
	if err := http.ListenAndServe(":8080", nil); err != nil {
		fmt.Println("stopped:", err)
	}
}
