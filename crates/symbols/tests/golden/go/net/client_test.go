package net

import "testing"

func TestClient(t *testing.T) {}
