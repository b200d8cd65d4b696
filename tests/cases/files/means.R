# Means by group.
means <- function(data, by = "group", na.rm = TRUE) {
  groups <- split(data$value, data[[by]])
  sapply(groups, function(values) {
    if (na.rm) {
      values <- values[!is.na(values)]
    }
    mean(values) %||% NA_real_
  })
}

data <- data.frame(group = c("a", "b", 'a"'), value = c(1, NA, 3L))
print(paste0("means: ", toString(round(means(data), 2))))
path <- r"(C:\data (old))"
`odd name` <- data |> subset(value > 1 & group %in% c("a", "b"))
