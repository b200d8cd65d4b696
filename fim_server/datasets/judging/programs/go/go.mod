module fim-judge-go

go 1.22

toolchain go1.27.3
