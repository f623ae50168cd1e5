package app

import "example.com/shop/net"

func Run(ctx any) string {
	client, _ := net.NewClient("x")
	return client.Close().Error()
}
