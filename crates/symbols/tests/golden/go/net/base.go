package net

type Base struct{}

func dial(name string) *Client { return nil }

func (c *Client) Close() error { return nil }
