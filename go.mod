module github.com/rocebed/rocebed

go 1.26.0
