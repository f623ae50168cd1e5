package net

import (
	"context"
	"fmt"
	stdhttp "net/http"

	"github.com/pkg/errors"

	. "example.com/shop/cmd/app"
)

const (
	Red Colour = iota
	Green
	blue, white = 1, 2
)

var ErrGone = errors.New("gone")
var (
	first, second int
)

type Colour int
type Alias = stdhttp.Client
type Handler func(ctx context.Context) error

type Client struct {
	*Base
	stdhttp.Client
	Name, Title string
	options     struct{ deep bool }
	Hook        func(int) error `json:"hook"`
}

type Doer interface {
	fmt.Stringer
	Do(ctx context.Context, in ...string) (out string, err error)
	Read([]byte) (int, error)
}

type Number interface {
	~int | ~float64
}

type Stack[T any, N Number] struct{ items []T }

func NewClient(name string, opts ...Option) (*Client, error) {
	inner := func(x int) {}
	inner(1)
	return dial(name), nil
}

func (c *Client) Do(ctx context.Context, in ...string) (out string, err error) { return Run(ctx), nil }
func (s Stack[T, N]) Push(item T)                                           {}
func (s *Stack[T, N]) Pop() (T, bool)                                       { var t T; return t, false }
func Map[T, U any](in []T, f func(T) U) []U                                 { return nil }
func init()                                                                 {}
