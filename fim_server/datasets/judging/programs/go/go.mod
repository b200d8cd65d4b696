module fim-judge-go

go 1.21
