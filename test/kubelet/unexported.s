// Functions without a body are allowed only beside an assembly file, and two of unexported.go have none.
